package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// both runs a test on an empty database of each dialect.
func both(t *testing.T, test func(t *testing.T, w *storetest.World)) {
	t.Helper()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, storetest.NewWorld(t, driver(t)))
		})
	}
}

// TestRefillGoesOn checks that other clients are refilled even if the refill of one client fails.
func TestRefillGoesOn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		due := func(c *puntuale.Client) { c.RefillAt, c.Credits = storetest.Begin, new(int64(5)) }
		var last puntuale.ClientID
		for range 3 {
			last = w.Client(puntuale.AccountBaby, due).ID
		}
		w.Exec(fmt.Sprintf("create unique index no_two on client (refill_at) where refill_at <> %d", storetest.Begin.UnixMicro()))
		next := storetest.Begin.AddDate(1, 0, 0)
		n, err := w.Refill(t.Context(), storetest.Begin, func(c puntuale.Client) time.Time {
			if c.ID == last {
				return next.AddDate(1, 0, 0)
			}
			return next
		})
		if n != 2 || err == nil || strings.Count(err.Error(), "refill client") != 1 {
			t.Errorf("%d refilled, %v", n, err)
		}
		if n := w.Int("select credits from client where id = $1", last); n != 2000 {
			t.Errorf("the last has %d credits", n)
		}
	})
}
