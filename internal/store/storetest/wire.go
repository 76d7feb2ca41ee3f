package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Commits reports whether bytes that a store sends to PostgreSQL execute a COMMIT. Preparing a COMMIT without executing
// it does not count. The COMMIT may be sent as text, or under the name that pgx gives to the prepared statement.
func Commits(said []byte) bool {
	digest := sha256.Sum256([]byte("commit"))
	bound := "\x00stmtcache_" + hex.EncodeToString(digest[:24]) + "\x00"
	return bytes.Contains(said, []byte("Q\x00\x00\x00\x0bcommit\x00")) || bytes.Contains(said, []byte(bound))
}
