package storetest

import (
	"testing"
	"time"

	"puntuale/internal/clock"
)

// untilMost is how long [Until] waits, on a slow machine.
const untilMost = 20 * time.Second

// Until waits until something is so, and fails the test where it does not become so. It looks again and again, for what no
// signal tells, such as rows of another connection.
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
