package storetest

import (
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
