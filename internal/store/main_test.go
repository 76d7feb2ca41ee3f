package store_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that closing a store leaves no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
