// Package session opens the sessions that this node owns at their connectors. It stores the changes of their links, and carries out the
// commands that any node gave for them.
//
// The dispatcher says which sessions are the node's ([Manager.Own]). The manager hands each to its connector, and takes it back before
// another node may own it. Calls about one session follow each other, in a goroutine that lives as long as there are some. The latest
// report of each session is kept in memory until it is stored. So a report never waits, and a rotating code never queues.
//
// Commands are rows. Every second, and at a wakeup, the manager looks for those of its sessions, marks each as taken, carries it out and
// stores the answer. All of that is written under the node's lease, and only while the node owns the session. So a node that lost a session
// cannot write over what its successor wrote. A successor finds commands that were taken and not answered: it runs again what is harmless,
// and refuses the rest.
package session
