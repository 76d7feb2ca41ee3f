package store

import (
	"testing"

	"puntuale/internal/store/transfer"
)

// An export for good that is refused says what runs, in words.
func TestServersRun(t *testing.T) {
	t.Parallel()
	for want, n := range map[string][2]int64{
		"1 server sends from it and 1 connection of a server is open; stop them all first":  {1, 1},
		"0 servers send from it and 3 connections of servers are open; stop them all first": {0, 3},
	} {
		if got := transfer.ServersRun(n[0], n[1]); got != want {
			t.Errorf("%v: %s", n, got)
		}
	}
}
