// Package session opens the sessions that this node owns at their connectors. It stores the changes of their links. It also carries out the
// commands that any node gave for them.
//
// The dispatcher says which sessions are the node's ([Manager.Own]). The manager gives each session to its connector, and takes it back
// before another node may own it. Calls about one session follow each other, in a goroutine that lives while there are calls. The latest
// report of each session is kept in memory until it is stored. So a report never waits, and a code that changes often never queues.
//
// Commands are rows. Every second, and at a wakeup, the manager looks for the commands of its sessions. It marks each as taken, carries it
// out and stores the answer. It writes all of that under the node's lease, and only while the node owns the session. So a node that lost a
// session cannot overwrite its successor's data. A successor finds commands that were taken and not answered. It runs the harmless ones
// again, and refuses the rest.
package session
