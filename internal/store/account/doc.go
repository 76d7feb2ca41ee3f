// Package account stores who uses the service: partners, their clients with limits and keys, and the users who sign in.
// It also stores what users did (audit entries) and the totals of each day. A new client also gets an event stream and
// a simulated session, and changes of credits enter the ledger of package queue.
package account
