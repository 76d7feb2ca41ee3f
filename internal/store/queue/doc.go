// Package queue has the statements of the dispatcher: what is due, which messages may be sent, their outcomes, and
// later receipts of networks. It also closes messages without an attempt, counts calls and credits, and keeps the
// sandbox's ledger.
package queue
