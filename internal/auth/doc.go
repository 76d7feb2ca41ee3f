// Package auth makes and reads API keys and hashes passwords. It holds no state but the bound on how many passwords are
// hashed at once, and asks no database. The caller that looks up a key's hash decides what the key may do.
package auth
