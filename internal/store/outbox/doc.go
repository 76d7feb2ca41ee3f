// Package outbox takes facts into the outbox, inside the transactions that make them true, and forgets what people are to be forgotten of.
// Package event makes events of the facts.
//
// # Nobody misses a fact
//
// A transaction asks in the INSERT itself who wants a fact. It remembers nothing. On PostgreSQL two transactions may overlap: one that wants
// more, and one that writes a fact. So the first locks the table of facts before it commits ([Announce]). Each transaction that wrote facts,
// or found that nobody wanted them, holds that table until it ends. The first waits for those. Later ones wait for the first, and see what it
// wants. This costs the transactions of facts nothing.
package outbox
