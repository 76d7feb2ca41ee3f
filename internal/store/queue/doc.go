// Package queue has the statements of the dispatcher: what is due, which of it may be sent, what came of it, and what networks say of
// it later. It also closes messages without an attempt, counts calls and credits, and keeps the sandbox's ledger.
package queue
