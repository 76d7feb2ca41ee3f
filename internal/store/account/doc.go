// Package account keeps who uses the service: partners, their clients with limits and keys, and the users that sign in. It also keeps what
// they did (audit entries) and the counts of each day (totals). It knows no message and no session.
package account
