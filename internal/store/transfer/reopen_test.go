package transfer

import (
	"errors"
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
)

// TestServersRun checks that the error of a refused final export says what still runs.
func TestServersRun(t *testing.T) {
	t.Parallel()
	for want, n := range map[string][2]int64{
		"1 server sends from it and 1 connection of a server is open; stop them all first":  {1, 1},
		"0 servers send from it and 3 connections of servers are open; stop them all first": {0, 3},
	} {
		e, ok := errors.AsType[*puntuale.Error](serversRun(n[0], n[1]))
		if !ok || catalogue.Message(e.Reason) != want {
			t.Errorf("%v: %+v", n, e)
		}
	}
}
