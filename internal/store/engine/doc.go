// Package engine runs SQL statements on PostgreSQL, or on one SQLite file. A statement has the same text on both
// ([Dialect]). The package opens connections, reads through pools ([ReadPool]), and commits the tasks of many callers
// together ([Writer]). It knows nothing about messages or clients. The packages that use it contain the tables and
// statements.
//
// # Who writes
//
// All writes go through a few writers. Each writer is one goroutine with one connection. Callers queue tasks, and a
// writer commits the tasks of several callers together. A writer does not wait for more tasks before it commits, with
// one exception: replies from networks (store/reply/inboundmessage.go).
//
// SQLite has one writer. On PostgreSQL, each node has two writers for API calls, and the calls of one client always use
// the same of these two. Each node also has one writer for each of these: claims, outcomes, the sandbox's ledger,
// heartbeats, events, and the archiver. One more writer does large background work, such as chunks of campaigns. If a
// transaction fails, the writer runs its tasks again, one by one.
package engine
