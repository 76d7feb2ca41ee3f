// Package engine runs SQL statements on PostgreSQL, or on one SQLite file. A statement has the same text on both
// ([Dialect]). The package opens connections, reads through pools ([ReadPool]), and commits the tasks of many callers
// together ([Writer]). It knows nothing about messages or clients. The packages that use it have the tables and
// statements.
//
// # Who writes
//
// All writes go through a few writers. Each writer is one goroutine with one connection. Callers queue tasks, and the
// tasks of several callers are committed together. Tasks do not wait to be committed with later ones, except for
// replies of networks (store/reply/inboundmessage.go).
//
// SQLite has one writer. On PostgreSQL, each node has two writers for API calls, and a client's calls always go to the
// same one. There is one writer each for claims, outcomes, the sandbox's ledger, heartbeats, chunks of campaigns, and
// the archiver. If a transaction fails, the writer runs its tasks again, one by one.
package engine
