package store_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestSlowLists checks that the store stops lists that never end. Until then, it must still answer other reads: of
// authentication, of starts, and of the dispatcher.
func TestSlowLists(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			d.Config.ListTimeout = time.Second
			w := storetest.NewWorld(t, d)
			c := w.Client(puntuale.AccountFull)
			ctx := context.Background()
			const lists = 8
			ended := make(chan error, lists)
			began := time.Now()
			for range lists {
				go func() { ended <- store.ListWithoutEnd(ctx, w.Store) }()
			}
			storetest.Until(t, "lists are being read", func() bool { return store.Listing(w.Store) })
			node := w.MustJoin()
			answered := 0
			for ; len(ended) == 0; answered++ {
				if _, err := w.Principal(ctx, c.Key, storetest.Begin); err != nil {
					t.Fatalf("a key: %v", err)
				}
				if _, _, err := c.StartInfo(ctx, c.Sequence); err != nil {
					t.Fatalf("what a start needs: %v", err)
				}
				if _, err := w.Due(ctx, []puntuale.QueueCursor{{Session: c.Session}}, storetest.Begin, 1); err != nil {
					t.Fatalf("due: %v", err)
				}
				if _, _, err := w.Roster(ctx, node); err != nil {
					t.Fatalf("roster: %v", err)
				}
			}
			if answered == 0 {
				t.Error("nothing was answered while lists were read")
			}
			for range lists {
				if err := <-ended; puntuale.CodeOf(err) != puntuale.CodeUnavailable {
					t.Errorf("a list without end: %v", err)
				}
			}
			t.Logf("%d rounds in %v", answered, time.Since(began))
			if _, _, err := c.Messages(ctx, puntuale.MessageFilter{}, puntuale.Page{Limit: 10}); err != nil {
				t.Errorf("a list afterwards: %v", err)
			}
		})
	}
}
