// Package fleet stores which node owns which sessions: leases, owners and links. It also stores the commands for
// owners, and sends wakeups between nodes. It can report whether the installation was moved, and whether the database
// failed over to another server.
package fleet
