// Package outbox stores facts, such as "this message was delivered", in the transactions that make them true. Package
// event later makes events from the facts. During an erasure, package outbox removes the receivers' answers about the
// person.
//
// # Nobody misses a fact
//
// The INSERT of a fact itself checks whether a subscription wants the fact. Nothing is cached between transactions.
//
// On PostgreSQL, a transaction that adds a subscription may overlap with a transaction that writes a fact. So the
// subscribing transaction locks the table of facts before it commits ([Announce]). Each transaction that writes facts,
// or finds that no subscription wants them, holds a weaker lock on that table until it ends. The subscribing
// transaction waits for these transactions. Later transactions wait for the subscribing transaction, and then see the
// subscription. Transactions that write facts do not wait for each other.
package outbox
