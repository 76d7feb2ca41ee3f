// Package auth creates and checks API keys, and hashes passwords. Its only state is the queue that bounds how many
// passwords are hashed at the same time. It does not use a database. The caller that looks up a key's hash decides what
// the key may do.
package auth
