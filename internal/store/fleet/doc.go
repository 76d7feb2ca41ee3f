// Package fleet keeps which node owns which sessions: leases, owners and links. It also keeps the commands for
// owners, and sends wakeups between nodes. It knows whether the installation was moved, and whether another server
// became the database.
package fleet
