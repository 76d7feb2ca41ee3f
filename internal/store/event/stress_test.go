package event_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestNumbersTogether runs eight writers and three numberers on several nodes of one database. A reader that polls the
// feed must miss no event, get none twice, and never see a lower number after a higher number. Each webhook must have
// one delivery of each event.
func TestNumbersTogether(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		const writers, each = 8, 25
		ctx := context.Background()
		nodes := []*storetest.World{w}
		if w.DB.Postgres { // on SQLite only one process may use the file
			for range 2 {
				nodes = append(nodes, &storetest.World{Store: w.DB.Open(t), DB: w.DB})
			}
		}
		s := newEventClient(t, w)
		hook, err := s.CreateWebhook(ctx, puntuale.Webhook{URL: "https://x", Types: puntuale.AllEvents, Active: true}, []byte("s"), begin, nil)
		if err != nil {
			t.Fatal(err)
		}
		busy := w.Client(puntuale.AccountFull) // another client that has many facts
		if _, err := busy.CreateWebhook(ctx, puntuale.Webhook{URL: "https://x", Types: puntuale.AllEvents, Active: true}, []byte("s"), begin, nil); err != nil {
			t.Fatal(err)
		}
		var ids []puntuale.MessageID
		for range writers {
			ids = append(ids, s.MustStart(phone, begin, each)...)
		}
		theirs := busy.MustStart(phone, begin, each)
		done := make(chan struct{})
		var writing, numbering sync.WaitGroup
		for k := range writers {
			writing.Go(func() {
				of := nodes[k%len(nodes)].Tenant(s.ID)
				for i := range each {
					if _, err := of.CancelMessages(ctx, ids[k*each+i:k*each+i+1], storetest.Day, begin); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writing.Go(func() {
			for i := range theirs {
				if _, err := busy.CancelMessages(ctx, theirs[i:i+1], storetest.Day, begin); err != nil {
					t.Error(err)
				}
			}
		})
		for k := range 3 {
			numbering.Go(func() {
				for {
					if _, err := nodes[k%len(nodes)].NumberEvents(ctx, begin); err != nil {
						t.Error(err)
						return
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		var read []puntuale.Event
		for after, ended := int64(0), false; ; {
			all, next, err := s.Events(ctx, after, puntuale.AllEvents, 7, begin)
			if err != nil {
				t.Fatal(err)
			}
			read, after = append(read, all...), next
			if ended && len(all) == 0 {
				break
			}
			if !ended && len(read) > writers*each/2 {
				writing.Wait()
				close(done)
				numbering.Wait()
				for n := -1; n != 0; {
					if n, err = w.NumberEvents(ctx, begin); err != nil {
						t.Fatal(err)
					}
				}
				ended = true
			}
		}
		var told []puntuale.MessageID
		for i, e := range read {
			told = append(told, puntuale.MessageID(e.Subject))
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d has number %d", i, e.Seq)
			}
		}
		slices.Sort(told)
		slices.Sort(ids)
		if !slices.Equal(told, ids) {
			t.Errorf("%d events of %d messages", len(told), len(ids))
		}
		if n := w.Int("select count(*) from delivery where webhook_id = $1", hook); n != writers*each {
			t.Errorf("%d deliveries", n)
		}
	})
}

// TestSubscribeBesideFacts checks that a subscription misses no fact that commits after the subscription, even
// if the fact's transaction began earlier.
func TestSubscribeBesideFacts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		ctx := context.Background()
		for range 20 {
			c := w.Client(puntuale.AccountFull)
			ids := c.MustStart(phone, begin, 20)
			first := -1 // index of the first message that was cancelled after the subscription
			var mu sync.Mutex
			subscribed := false
			var both sync.WaitGroup
			both.Go(func() {
				for i := range ids {
					mu.Lock()
					if subscribed && first < 0 {
						first = i
					}
					mu.Unlock()
					if _, err := c.CancelMessages(ctx, ids[i:i+1], storetest.Day, begin); err != nil {
						t.Error(err)
					}
				}
			})
			both.Go(func() {
				if _, _, err := c.Events(ctx, 0, puntuale.AllEvents, 1, begin); err != nil {
					t.Error(err)
				}
				mu.Lock()
				subscribed = true
				mu.Unlock()
			})
			both.Wait()
			if _, err := w.NumberEvents(ctx, begin); err != nil {
				t.Fatal(err)
			}
			all, _, err := c.Events(ctx, 0, puntuale.AllEvents, 100, begin)
			if err != nil {
				t.Fatal(err)
			}
			if first >= 0 && len(all) < len(ids)-first {
				t.Fatalf("%d events of at least %d", len(all), len(ids)-first)
			}
		}
	})
}
