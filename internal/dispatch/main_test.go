package dispatch_test

import (
	"testing"

	"go.uber.org/goleak"

	"puntuale/internal/auth"
)

// TestMain checks that no dispatcher, store or bubble of these tests still runs at the end.
func TestMain(m *testing.M) {
	auth.CheapForTests()
	goleak.VerifyTestMain(m)
}
