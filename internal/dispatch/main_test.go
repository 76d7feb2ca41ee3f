package dispatch_test

import (
	"testing"

	"go.uber.org/goleak"

	"puntuale/internal/auth"
)

// Every dispatcher, store and bubble of these tests must be gone at the end.
func TestMain(m *testing.M) {
	auth.CheapForTests()
	goleak.VerifyTestMain(m)
}
