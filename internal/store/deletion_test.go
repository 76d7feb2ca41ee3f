package store_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// transactions is a meter that counts the transactions of the kind "write".
type transactions struct {
	puntuale.NoMeter
	writes atomic.Int64
}

func (m *transactions) Batch(kind string, _ int, _ time.Duration) {
	if kind == "write" {
		m.writes.Add(1)
	}
}

const (
	someone  = "+393331234567"
	bulkRuns = 2*1000/puntuale.MaxSteps + 1 // so many runs have more messages than two transactions handle
)

// bulk starts many messages on a session.
func bulk(t *testing.T, c *storetest.Client, session puntuale.SessionID) {
	t.Helper()
	for range bulkRuns {
		run := c.Run(someone, storetest.Begin, puntuale.MaxSteps)
		run.Run.Session = session
		if _, err := c.Start(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeletionInChunks checks that one transaction of a deletion handles at most a thousand messages.
func TestDeletionInChunks(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m := driver(t), &transactions{}
			d.Config.Meter = m
			w := storetest.NewWorld(t, d)
			c := w.Client(puntuale.AccountFull)
			second, err := c.CreateSession(t.Context(), puntuale.Session{Name: "seconda", Type: puntuale.Socket, Sandbox: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			took := func(want int64, what string, do func() error) {
				t.Helper()
				before := m.writes.Load()
				if err := do(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if n := m.writes.Load() - before; n != want {
					t.Errorf("%s: %d transactions, want %d", what, n, want)
				}
				if n := w.Int("select count(*) from message where state = 0 and session_id = $1", second); n != 0 {
					t.Errorf("%s: %d pending", what, n)
				}
			}
			bulk(t, c, second)
			took(3, "delete a sequence", func() error { return c.DeleteSequence(t.Context(), c.Sequence, false, true, storetest.Begin) })
			w.Exec("update message set state = 0, intent = 0, done_at = null")
			w.Exec("update message set intent = 5, intent_at = next_at - 1 where id % 2 = 0") // makes these messages uncertain
			took(2+2, "delete a session", func() error { return c.DeleteSession(t.Context(), second, true, 0, storetest.Begin) })
			if n := w.Int("select count(*) from message where state = 2"); n != bulkRuns*puntuale.MaxSteps/2 {
				t.Errorf("%d were given up", n)
			}
		})
	}
}

// TestSessionsDeletedTogether runs two deletions of sessions at the same time. Afterwards no row may contain the id of
// a deleted session, and no message may be left on a deleted session.
func TestSessionsDeletedTogether(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		other := w.DB.Open(t)
		for range 10 {
			c := w.Client(puntuale.AccountFull)
			remote := other.Tenant(c.ID)
			ctx := context.Background()
			var ids [2]puntuale.SessionID
			for i := range ids {
				var err error
				if ids[i], err = c.CreateSession(ctx, puntuale.Session{Name: "altra", Type: puntuale.Socket, Sandbox: true}, nil); err != nil {
					t.Fatal(err)
				}
				run := c.Run(someone, storetest.Begin, 3)
				run.Run.Session = ids[i]
				if _, err := c.Start(ctx, run); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for _, do := range []func() error{
				func() error { return c.DeleteSession(ctx, ids[0], false, ids[1], storetest.Begin) },
				func() error { return remote.DeleteSession(ctx, ids[1], false, ids[0], storetest.Begin) },
				func() error { return remote.SetDefaultPair(ctx, ids[0], c.Sequence, c.Sequence) },
				func() error {
					_, err := remote.CreateSequence(ctx, puntuale.Sequence{Name: "nuova", Session: ids[0]}, nil)
					return err
				},
				func() error {
					_, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "nuova", Session: ids[1]}, nil)
					return err
				},
			} {
				wg.Go(func() {
					if err := do(); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		for what, query := range map[string]string{
			"messages":  "select count(*) from message m join session s on s.client_id = m.client_id and s.id = m.session_id where m.state = 0 and s.deleted_at <> 0",
			"sequences": "select count(*) from sequence q join session s on s.client_id = q.client_id and s.id = q.session_id where s.deleted_at <> 0",
		} {
			if n := w.Int(query); n != 0 {
				t.Errorf("%d %s of deleted sessions", n, what)
			}
		}
		if n := w.DB.Meter.Deadlocks.Load(); n != 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}
