package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
)

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, w *storetest.World)) {
	t.Helper()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, storetest.NewWorld(t, driver(t)))
		})
	}
}

// withAdmissionDeadline returns a context with an admission deadline, and a function that makes the deadline pass.
func withAdmissionDeadline(t *testing.T, prevents bool) (context.Context, func()) {
	ends := make(chan struct{})
	return puntuale.WithAdmissionDeadline(t.Context(), puntuale.NewAdmissionDeadline(ends, prevents)), func() { close(ends) }
}

// soon waits for an answer. If no answer comes soon, it fails the test, and late is the failure message.
func soon(t *testing.T, answer <-chan error, late string) {
	t.Helper()
	select {
	case err := <-answer:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error(late)
	}
}

// TestWritersAreFair checks the order in which a writer does its tasks. Calls that prevent sending come first. After
// them, the first task of each owner comes before the second task of any owner.
func TestWritersAreFair(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		release := store.Occupy(w.Store, c.ID)
		var order []string // only the writer's goroutine appends to it
		ended := make(chan error, 8)
		queue := func(name string, owner int64, prevents bool) {
			t.Helper()
			ctx, _ := withAdmissionDeadline(t, prevents)
			n := store.Queued(w.Store, c.ID)
			go func() {
				ended <- store.Write(ctx, w.Store, c.ID, owner, func() { order = append(order, name) })
			}()
			storetest.Until(t, name+" waits", func() bool { return store.Queued(w.Store, c.ID) > n })
		}
		queue("greedy 1", 1, false)
		queue("greedy 2", 1, false)
		queue("greedy 3", 1, false)
		queue("modest 1", 2, false)
		queue("other 1", 3, false)
		queue("modest 2", 2, false)
		queue("stop", 1, true)
		release()
		for range 7 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		want := []string{"stop", "greedy 1", "modest 1", "other 1", "greedy 2", "modest 2", "greedy 3"}
		if !slices.Equal(order, want) {
			t.Errorf("%v", order)
		}
	})
}

// TestWritersAreFairInBytes checks that large tasks of one owner do not delay another owner. A large task counts as
// several tasks.
func TestWritersAreFairInBytes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		release := store.Occupy(w.Store, c.ID)
		var order []string // only the writer's goroutine appends to it
		ended := make(chan error, 8)
		queue := func(name string, owner int64, bytes int) {
			t.Helper()
			n := store.Queued(w.Store, c.ID)
			go func() {
				ended <- store.WriteBytes(t.Context(), w.Store, c.ID, owner, bytes, func() { order = append(order, name) })
			}()
			storetest.Until(t, name+" waits", func() bool { return store.Queued(w.Store, c.ID) > n })
		}
		queue("greedy 1", 1, 1<<20)
		queue("greedy 2", 1, 1<<20)
		queue("greedy 3", 1, 1<<20)
		queue("modest 1", 2, 100)
		queue("modest 2", 2, 100)
		queue("modest 3", 2, 100)
		release()
		for range 6 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if want := []string{"greedy 1", "modest 1", "modest 2", "modest 3", "greedy 2", "greedy 3"}; !slices.Equal(order, want) {
			t.Errorf("%v", order)
		}
	})
}

// TestClaimIsAlone checks that a claim shares its transaction with no other task. It also checks that a claim does not
// wait for earlier calls, because the claim's messages are due now.
func TestClaimIsAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		node := w.MustJoin()
		ids := c.MustStart("+393331234567", storetest.Begin, 1)
		release := store.Occupy(w.Store, c.ID)
		hold, wrote := make(chan struct{}), make(chan error, 1)
		go func() {
			wrote <- store.Write(t.Context(), w.Store, c.ID, int64(c.ID), func() { <-hold })
		}()
		storetest.Until(t, "the call waits", func() bool { return store.Queued(w.Store, c.ID) == 1 })
		claimed := make(chan error, 1)
		go func() {
			granted, err := w.Claim(t.Context(), puntuale.Claim{
				Node: node, Token: storetest.Token(node), Now: storetest.Begin.Add(time.Minute), Messages: c.Items("+393331234567", 0, ids...),
			})
			if err == nil && granted[0] != puntuale.ClaimGranted {
				err = fmt.Errorf("granted = %v", granted)
			}
			claimed <- err
		}()
		if !w.DB.Postgres { // on PostgreSQL, claims have a writer of their own
			storetest.Until(t, "the claim waits", func() bool { return store.Queued(w.Store, c.ID) == 2 })
		}
		release()
		soon(t, claimed, "the claim waits for a call's transaction")
		close(hold)
		if err := <-wrote; err != nil {
			t.Error(err)
		}
	})
}

// TestClaimsDoNotStarveCalls checks that the writer does a call even while many claims wait. This matters most for a
// stop during a backlog.
func TestClaimsDoNotStarveCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		end := store.Claiming(w.Store, c.ID)
		wrote := make(chan error, 1)
		go func() { wrote <- store.Write(t.Context(), w.Store, c.ID, int64(c.ID), func() {}) }()
		soon(t, wrote, "the call waits for as long as there are claims")
		end()
	})
}

// TestChunkIsAlone checks that a call and a chunk of a campaign never share a transaction. The call waits only for the
// chunk that is running.
func TestChunkIsAlone(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		begun, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
		fed, wrote := make(chan error, 2), make(chan error, 1)
		go func() { fed <- store.Feeding(w.Store, func() { close(begun); <-first }) }()
		<-begun
		go func() { fed <- store.Feeding(w.Store, func() { <-second }) }()
		if !w.DB.Postgres { // on PostgreSQL, chunks have a writer of their own
			storetest.Until(t, "the chunk waits", func() bool { return store.Queued(w.Store, c.ID) == 1 })
		}
		go func() { wrote <- store.Write(t.Context(), w.Store, c.ID, int64(c.ID), func() {}) }()
		if !w.DB.Postgres {
			storetest.Until(t, "the call waits", func() bool { return store.Queued(w.Store, c.ID) == 2 })
		}
		close(first)
		soon(t, wrote, "the call waits for the chunk behind it")
		close(second)
		for range 2 {
			soon(t, fed, "a chunk does not end")
		}
	})
}

// TestCallsDoNotStarveChunks checks that the writer does a campaign's chunk even while many calls wait.
func TestCallsDoNotStarveChunks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		end := store.Calling(w.Store, c.ID)
		fed := make(chan error, 1)
		go func() { fed <- store.Feeding(w.Store, func() {}) }()
		soon(t, fed, "the chunk waits for as long as there are calls")
		end()
	})
}

// TestStartPassesDeadline checks that a waiting start is refused as soon as its admission deadline passes. Nothing of
// it is stored or counted, and its idempotency key works later. A start that has begun is never refused.
func TestStartPassesDeadline(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		release := store.Occupy(w.Store, c.ID)
		ctx, lose := withAdmissionDeadline(t, false)
		keyed := c.Run("+393331234567", storetest.Begin, 3)
		keyed.Idempotency = storetest.Keyed("POST /api/start/1", "k", "h")
		refused := make(chan error, 1)
		go func() {
			_, err := c.Start(ctx, keyed)
			refused <- err
		}()
		storetest.Until(t, "the start waits", func() bool { return store.Queued(w.Store, c.ID) > 0 })
		lose()
		if err := <-refused; puntuale.CodeOf(err) != puntuale.CodeOverloaded {
			t.Fatalf("%v", err)
		}
		release()
		if runs, days := w.Int("select count(*) from run"), w.Int("select count(*) from api_usage"); runs != 0 || days != 0 {
			t.Errorf("%d runs, %d days counted", runs, days)
		}
		again, err := storetest.Start(t.Context(), c, keyed)
		if err != nil || again.Replayed || len(again.IDs) != 3 || again.Usage.Used != 1 {
			t.Errorf("%+v, %v", again, err)
		}
		ctx, lose = withAdmissionDeadline(t, false)
		if err := store.Write(ctx, w.Store, c.ID, int64(c.ID), lose); err != nil {
			t.Errorf("a call that had begun: %v", err)
		}
		if _, err := c.Start(ctx, c.Run("+393331234567", storetest.Begin, 1)); err != nil {
			t.Errorf("the rest of a call that had begun: %v", err)
		}
	})
}

// TestReadPassesDeadline checks that a read is refused if its admission deadline passes before a connection is free. A
// read without a deadline waits.
func TestReadPassesDeadline(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		release := store.OccupyReaders(w.Store)
		ctx, lose := withAdmissionDeadline(t, false)
		lose()
		if _, _, err := c.StartInfo(ctx, c.Sequence); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
			t.Errorf("%v", err)
		}
		patientRead := make(chan error, 1)
		go func() {
			_, err := w.Principal(t.Context(), c.Key, storetest.Begin)
			patientRead <- err
		}()
		if _, err := w.Due(t.Context(), []puntuale.QueueCursor{{Session: c.Session}}, storetest.Begin, 1); err != nil {
			t.Errorf("the dispatcher: %v", err)
		}
		release()
		if err := <-patientRead; err != nil {
			t.Error(err)
		}
	})
}

// TestActsGiveWayToCalls lets one call arrive each time when a transaction runs in which rules act. On SQLite, the call
// is done before the transaction runs again. After five calls, the transaction runs to its end. On PostgreSQL, calls
// have writers of their own, so the transaction runs only once.
func TestActsGiveWayToCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		runs, most := 0, 6
		if w.Dialect.Postgres {
			most = 1
		}
		var done atomic.Int64
		answers := make(chan error, most)
		err := store.Acting(w.Store, func(statement func() error) error {
			if n := int(done.Load()); n != runs {
				t.Errorf("run %d: %d calls were done before it", runs+1, n)
			}
			runs++
			go func() { answers <- store.Write(t.Context(), w.Store, c.ID, 1, func() { done.Add(1) }) }()
			for store.Queued(w.Store, c.ID) == 0 && int(done.Load()) < runs {
				runtime.Gosched()
			}
			return statement()
		})
		if err != nil || runs != most {
			t.Errorf("%d runs, %v", runs, err)
		}
		for range runs {
			soon(t, answers, "a call was not answered")
		}
	})
}

// TestPanicFailsOneTask checks that a panic in a task fails only this task, and that nothing of it is stored. The other
// tasks of its transaction commit, and the writer goes on.
func TestPanicFailsOneTask(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, a engine.Querier) error{
		"between statements": func(context.Context, engine.Querier) error { panic("a bad row") },
		"in a row": func(ctx context.Context, a engine.Querier) error {
			return a.Query(ctx, "select 1", nil, func(engine.Row) error { panic("a bad row") })
		},
		"in a row of a later answer": func(ctx context.Context, a engine.Querier) error {
			if err := a.Queue(ctx, "select 1", nil, func(engine.Row) error { panic("a bad row") }); err != nil {
				return err
			}
			_, err := a.Exec(ctx, "delete from automation_timer where run_id = 0")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *storetest.World) {
				c := w.Client(puntuale.AccountFull)
				write := func(run int, end func(ctx context.Context, a engine.Querier) error) error {
					return store.Do(w.Store, c.ID, func(ctx context.Context, a engine.Querier) error {
						_, err := a.Exec(ctx, "insert into automation_timer (client_id, rule_id, run_id, phone, since, due_at) values ($1, 1, $2, '', 0, 0)", c.ID, run)
						if err != nil || end == nil {
							return err
						}
						return end(ctx, a)
					})
				}
				release := store.Occupy(w.Store, c.ID)
				good, bad := make(chan error, 2), make(chan error, 1)
				go func() { good <- write(1, nil) }()
				storetest.Until(t, "a task waits", func() bool { return store.Queued(w.Store, c.ID) == 1 })
				go func() { bad <- write(2, end) }()
				storetest.Until(t, "the bad task waits", func() bool { return store.Queued(w.Store, c.ID) == 2 })
				go func() { good <- write(3, nil) }()
				storetest.Until(t, "the last task waits", func() bool { return store.Queued(w.Store, c.ID) == 3 })
				release()
				soon(t, good, "a task before the bad one gets no answer")
				soon(t, good, "a task after the bad one gets no answer")
				if p, panicked := errors.AsType[*puntuale.PanicError](<-bad); !panicked || p.Value != "a bad row" {
					t.Errorf("the bad task: %v", p)
				}
				if err := write(4, nil); err != nil {
					t.Errorf("a later task: %v", err)
				}
				if n := w.Int("select sum(case when run_id = 2 then 100 else 1 end) from automation_timer where client_id = $1", c.ID); n != 3 {
					t.Errorf("%d rows", n)
				}
			})
		})
	}
}
