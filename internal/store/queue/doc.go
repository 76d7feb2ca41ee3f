// Package queue contains the dispatcher's statements: due messages, claims, outcomes, and later receipts. It also
// closes messages without making an attempt, counts calls and credits, and keeps the sandbox's ledger. After commits
// were lost (failover, restore), it quarantines the messages that the network may already have.
package queue
