package store_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Closing a store leaves no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
