// Package account keeps who uses the service: partners, their clients with limits and keys, and the users that sign in. It
// also keeps what they did (audit entries) and what each day counted (totals). It knows no message and no session.
package account
