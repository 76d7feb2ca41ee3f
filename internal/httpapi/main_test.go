package httpapi_test

import (
	"os"
	"testing"

	"puntuale/internal/auth"
)

func TestMain(m *testing.M) {
	auth.CheapForTests()
	os.Exit(m.Run())
}
