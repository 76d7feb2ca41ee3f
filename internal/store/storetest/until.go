package storetest

import (
	"testing"
	"time"

	"puntuale/internal/clock"
)

// untilMost is how long [Until] waits at most, on a slow machine.
const untilMost = 20 * time.Second

// Until waits for a condition, and fails the test if the condition does not become true. It polls, because some changes send no signal. An
// example is a row that another connection writes.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	c := clock.System()
	for deadline := c.Now().Add(untilMost); !so(); {
		if c.Now().After(deadline) {
			t.Fatalf("not within %v: %s", untilMost, what)
		}
		if err := c.Sleep(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
