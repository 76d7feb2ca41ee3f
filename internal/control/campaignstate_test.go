package control

import (
	"errors"
	"strings"
	"testing"

	"puntuale"
)

// A panic in a check is an error of this check, and does not end the server.
func TestPanicOfCheckIsAnError(t *testing.T) {
	t.Parallel()
	if err := puntuale.Recovered(func() error { panic("a bad list") }); err == nil || !strings.Contains(err.Error(), "a bad list") {
		t.Errorf("%v", err)
	}
	other := errors.New("the store is gone")
	if err := puntuale.Recovered(func() error { return other }); !errors.Is(err, other) {
		t.Errorf("%v", err)
	}
}
