// Package auth makes and reads API keys and hashes passwords. It holds no state but the bound on how many passwords
// are hashed at once, and asks no database: what a key may do is decided by who looks its hash up.
package auth
