package control_test

import (
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// TestFollowersAreBounded: at most forty callers may follow one client's messages. Another caller is refused until one
// of the forty stops.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	client := newLimited(t, storetest.SQLite(t)).client
	var open []*control.Following
	defer func() {
		for _, f := range open {
			f.Stop()
		}
	}()
	follow := func() error {
		f, err := client.Follow("")
		if err == nil {
			open = append(open, f)
		}
		return err
	}
	for range 40 {
		if err := follow(); err != nil {
			t.Fatalf("after %d: %v", len(open), err)
		}
	}
	if err := follow(); puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		t.Errorf("one more: %v", err)
	}
	open[0].Stop()
	open = open[1:]
	if err := follow(); err != nil {
		t.Errorf("after one ended: %v", err)
	}
}
