// Package session opens the sessions that this node owns at their connectors, and stores the changes of their links.
// It also carries out the commands that any node gives for these sessions.
//
// The dispatcher says which sessions belong to the node ([Manager.Own]). The manager opens each session at its
// connector, and closes it before another node may own it. Calls for one session run one after the other, in a
// goroutine that lives as long as there are calls. The manager keeps the latest report of each session in memory
// until it is stored. So a report never waits, and a code that changes often fills no queue.
//
// Commands are rows of the database. Every second, and after a wakeup, the manager looks for commands for its
// sessions. It marks each command as taken, carries it out and stores the answer. All these writes are under the
// node's lease, and happen only while the node owns the session. So a node that lost a session cannot overwrite the
// data of the session's new owner. The new owner may find commands that were taken and not answered. It carries out
// the harmless ones again, and refuses the others.
package session
