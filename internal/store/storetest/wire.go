package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Commits reports whether what a store says to PostgreSQL holds a COMMIT that is to be done, and not only prepared: as a
// text of its own, or bound under the name that pgx gives to the prepared one.
func Commits(said []byte) bool {
	digest := sha256.Sum256([]byte("commit"))
	bound := "\x00stmtcache_" + hex.EncodeToString(digest[:24]) + "\x00"
	return bytes.Contains(said, []byte("Q\x00\x00\x00\x0bcommit\x00")) || bytes.Contains(said, []byte(bound))
}
