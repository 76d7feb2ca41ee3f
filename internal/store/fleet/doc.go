// Package fleet records which node has which sessions: leases, owners, links, commands for a session's owner, and the wakeups that nodes
// send each other. It also knows whether the installation was moved, and whether another server became the database.
package fleet
