package storetest

import (
	"testing"
	"time"
)

// untilMost is how long [Until] waits, on a slow machine.
const untilMost = 20 * time.Second

// Until waits until something is so, and fails the test where it does not become so.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(untilMost); !so(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", untilMost, what)
		}
	}
}
