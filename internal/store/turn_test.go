package store_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestListsOfOneClient checks that a client with many slow lists does not delay other clients' lists. Background work
// must not wait for any list.
func TestListsOfOneClient(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			d.Config.ListTimeout = time.Minute
			testListsOfOneClient(t, storetest.NewWorld(t, d))
		})
	}
}

func testListsOfOneClient(t *testing.T, w *storetest.World) {
	greedy, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	ctx, cancel := context.WithCancel(t.Context())
	const lists = 5
	ended := make(chan error, lists)
	for range lists {
		go func() { ended <- store.ListOwnWithoutEnd(ctx, w.Store, greedy.ID) }()
	}
	storetest.Until(t, "a list is being read", func() bool { return store.ListsRead(w.Store) > 0 })
	answered := 0
	for range 20 {
		if _, _, err := other.Messages(t.Context(), puntuale.MessageFilter{}, puntuale.Page{Limit: 10}); err != nil {
			t.Fatalf("another's list: %v", err)
		}
		if len(ended) == 0 {
			answered++
		}
	}
	if answered == 0 {
		t.Error("nothing was answered while lists were read")
	}
	go func() { ended <- store.ListWithoutEnd(ctx, w.Store) }() // now lists use all connections that they may use
	storetest.Until(t, "lists take all connections", func() bool { return store.Listing(w.Store) })
	if err := w.Maintain(t.Context(), storetest.Begin, storetest.Begin.Add(-time.Hour)); err != nil {
		t.Errorf("maintain: %v", err)
	}
	if _, err := w.Refill(t.Context(), storetest.Begin, func(puntuale.Client) time.Time { return time.Time{} }); err != nil {
		t.Errorf("refill: %v", err)
	}
	if !store.Listing(w.Store) {
		t.Error("the lists were over before")
	}
	cancel()
	for range lists + 1 {
		if err := <-ended; err == nil {
			t.Error("a list without end has one")
		}
	}
}
