package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"puntuale/internal/clock"
)

// maxUntil is the longest wait of [Until]. It is long enough for a slow machine.
const maxUntil = 20 * time.Second

// Until waits until condition returns true. It fails the test if this takes too long. It polls, because some changes
// send no signal, such as a row that another connection writes.
func Until(t testing.TB, expected string, condition func() bool) {
	t.Helper()
	c := clock.System()
	for deadline := c.Now().Add(maxUntil); !condition(); {
		if c.Now().After(deadline) {
			t.Fatalf("not within %v: %s", maxUntil, expected)
		}
		if err := c.Sleep(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// Commits reports whether bytes that a store sends to PostgreSQL execute a COMMIT. Preparing a COMMIT without executing
// it does not count. The COMMIT may be sent as text, or under the name that pgx gives to the prepared statement.
func Commits(said []byte) bool {
	digest := sha256.Sum256([]byte("commit"))
	bound := "\x00stmtcache_" + hex.EncodeToString(digest[:24]) + "\x00"
	return bytes.Contains(said, []byte("Q\x00\x00\x00\x0bcommit\x00")) || bytes.Contains(said, []byte(bound))
}
