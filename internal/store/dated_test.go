package store_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store/storetest"
)

// TestMomentsAreOfTheCommit checks that a row that commits late also has a late timestamp. A reader remembers the last
// timestamp and continues after it. So the reader misses no row.
func TestMomentsAreOfTheCommit(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(w *storetest.World, c *storetest.Client, item puntuale.ClaimItem, token int64) error{
		"record": func(w *storetest.World, _ *storetest.Client, item puntuale.ClaimItem, token int64) error {
			_, err := w.Record(context.Background(), storetest.Begin, []puntuale.Result{{MessageRef: item.MessageRef, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}})
			return err
		},
		"settle": func(w *storetest.World, _ *storetest.Client, item puntuale.ClaimItem, token int64) error {
			return w.Settle(context.Background(), 0, storetest.Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed}})
		},
		"give up": func(_ *storetest.World, c *storetest.Client, _ puntuale.ClaimItem, _ int64) error {
			return c.GiveUp(context.Background(), c.Session, storetest.Begin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := storetest.Postgres(t)
			w := storetest.NewWorld(t, d)
			c := w.Client(puntuale.AccountFull)
			item := c.Items(someone, 0, c.MustStart(someone, storetest.Begin, 1)...)[0]
			token, _ := w.MustClaim(w.MustJoin(), storetest.Begin, item)
			holder, err := d.SQL.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec("select 1 from message for update"); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- write(w, c, item, token) }()
			storetest.Until(t, "it waits for the row", func() bool {
				return w.Int("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()") > 0
			})
			d.Clock.Advance(1500 * time.Millisecond)
			if err := holder.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if m := c.Detail(item.ID); !m.Done.Equal(d.Clock.Now()) {
				t.Errorf("done at %v, committed at %v", m.Done, d.Clock.Now())
			}
		})
	}
}

// asked is a clock that counts how often it is read.
type asked struct {
	clock.Clock
	times atomic.Int64
}

func (a *asked) Now() time.Time {
	defer a.times.Add(1)
	return a.Clock.Now()
}

// TestLedgerMomentsAreOfTheCommit does the check of TestMomentsAreOfTheCommit for the simulated network's ledger.
func TestLedgerMomentsAreOfTheCommit(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			counter := &asked{Clock: d.Clock}
			d.Config.Clock = counter
			w := storetest.NewWorld(t, d)
			c := w.Client(puntuale.AccountFull)
			holder, err := d.SQL.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close()
			do := func(text string) {
				t.Helper()
				if _, err := holder.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			if d.Postgres {
				do("begin; lock table sandbox_message in exclusive mode")
			} else {
				do("begin immediate")
			}
			before := counter.times.Load()
			ended := make(chan error, 1)
			go func() {
				ended <- w.Receive(context.Background(), puntuale.SandboxMessage{Client: c.ID, Message: 1, ConnectorID: "a", Phone: someone, Received: storetest.Begin})
			}()
			storetest.Until(t, "it waits", func() bool {
				if d.Postgres {
					return w.Int("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()") > 0
				}
				return counter.times.Load() > before+1 // both the call and its writer have read the clock
			})
			d.Clock.Advance(1500 * time.Millisecond)
			do("commit")
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			all, _, err := c.SandboxMessages(t.Context(), puntuale.Page{})
			if err != nil || len(all) != 1 || !all[0].Received.Equal(d.Clock.Now()) {
				t.Errorf("received %+v, %v; committed at %v", all, err, d.Clock.Now())
			}
		})
	}
}
