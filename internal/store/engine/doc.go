// Package engine runs statements on PostgreSQL, or on one SQLite file, with the same texts on both. It opens connections, reads by pools
// ([ReadPool]), and commits the tasks of many callers together ([Writer]). It knows no noun of the service. Its callers have the tables and
// statements.
//
// # Who writes
//
// All writing goes through a few writers, each one goroutine with one connection. Callers queue tasks and share commits. Only replies of
// networks wait to make transactions larger (store/inboundmessage.go). SQLite has one writer. On PostgreSQL a client's calls always go to
// the same of two writers of the node. Claims, outcomes, the sandbox's ledger, heartbeats, chunks of campaigns and the archiver have one
// each. If a transaction fails, the writer runs it again, task by task.
package engine
