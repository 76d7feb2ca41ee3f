// Package session opens the sessions of this node at their connectors, and stores the changes of their links. It also
// executes the commands that any node gives for these sessions. It stands between the dispatcher, which decides which
// sessions this node owns, and the connectors, which talk to the networks.
//
// The dispatcher decides which sessions belong to the node ([Manager.Own]). The manager opens each session at its
// connector, and closes it before another node may own it. Calls for one session run one after the other, in a
// goroutine that ends when there are no more calls. Until the latest report of a session is stored, the manager keeps
// only this report in memory. Therefore, a report never waits, and frequent reports need no queue.
//
// Commands are rows of the database. Every second, and after a wakeup, the manager searches for commands for its
// sessions. It marks each command as taken, executes it and stores the answer. All these writes are under the node's
// lease, and happen only while the node owns the session. Therefore, a node that lost a session cannot overwrite the
// data of the session's new owner. The new owner may find commands that were taken and not answered. The new owner
// executes the harmless ones again, and refuses the others.
package session
