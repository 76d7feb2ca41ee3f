package store_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// wakeups contains the wakeups that a store received: for each session the last one.
type wakeups struct {
	mu   sync.Mutex
	all  map[puntuale.SessionID]time.Time
	late map[puntuale.SessionID]time.Time // latest due time that any wakeup of the session contained
}

func listening(s *store.Store) *wakeups {
	h := &wakeups{all: map[puntuale.SessionID]time.Time{}, late: map[puntuale.SessionID]time.Time{}}
	s.Listen(func(session puntuale.SessionID, due time.Time) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all[session] = due
		if due.After(h.late[session]) {
			h.late[session] = due
		}
	})
	return h
}

func (h *wakeups) heard() map[puntuale.SessionID]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.all)
}

// ears waits until n connections listen for wakeups.
func ears(t *testing.T, w *storetest.World, n int64) {
	t.Helper()
	storetest.Until(t, "the stores listen", func() bool {
		return w.Int("select count(*) from pg_stat_activity where datname = current_database() and application_name = 'puntuale server listens' and query like 'listen %' and state = 'idle'") == n
	})
}

func TestWakeupsReachOtherNodes(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	other, silent := d.Open(t), d.Open(t)
	here, remote := listening(w.Store), listening(other)
	ears(t, w, 2)
	due := storetest.Begin.Add(1234567 * time.Microsecond)
	w.Notify(7, due)
	w.Notify(7, due.Add(-time.Second)) // both the latest and the earliest due time are sent
	w.Notify(7, due.Add(-time.Millisecond))
	w.Notify(7, due.Add(-time.Second))
	w.Notify(8, time.Time{})
	w.Notify(0, time.Time{})
	w.Notify(puntuale.SessionID(puntuale.MaxID), due)
	want := map[puntuale.SessionID]time.Time{7: due.Add(-time.Second), 8: {}, 0: {}, puntuale.SessionID(puntuale.MaxID): due}
	storetest.Until(t, "the other node heard", func() bool { return maps.Equal(remote.heard(), want) })
	remote.mu.Lock()
	if late := remote.late[7]; !late.Equal(due) {
		t.Errorf("the latest moment heard is %v, want %v", late, due)
	}
	remote.mu.Unlock()
	silent.Notify(9, due) // a node that does not listen can still send
	storetest.Until(t, "both nodes heard", func() bool { return here.heard()[9].Equal(due) && remote.heard()[9].Equal(due) })
	if n := len(here.heard()); n != 1 {
		t.Errorf("a node heard %d hints, and among them its own", n)
	}
	silent.Notify(10, due)
	if err := silent.Close(); err != nil {
		t.Error(err)
	}
	storetest.Until(t, "the last hint of a store that closed was heard", func() bool { return here.heard()[10].Equal(due) })
}

// TestWakeupsSurviveLostConnections checks that lost connections are replaced, and that wakeups then arrive again.
func TestWakeupsSurviveLostConnections(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	remote := listening(d.Open(t))
	for i := range 5 {
		ears(t, w, 1)
		session, due := puntuale.SessionID(i+1), storetest.Begin.Add(time.Duration(i)*time.Second)
		storetest.Until(t, fmt.Sprintf("hint %d was heard", i), func() bool { w.Notify(session, due); return remote.heard()[session].Equal(due) })
		w.Exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name in ('puntuale server hints', 'puntuale server listens')")
	}
}

// TestWakeupsOfDatabaseThatHangs checks that a hanging database delays neither the senders of wakeups nor the closing
// of the store. When the database answers again, wakeups must arrive again.
func TestWakeupsOfDatabaseThatHangs(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	other := d.Open(t)
	remote := listening(other)
	ears(t, w, 1)
	w.Notify(1, storetest.Begin)
	storetest.Until(t, "heard", func() bool { return len(remote.heard()) == 1 })
	ctx := context.Background()
	p.frozen.Lock()
	storetest.Until(t, "it is noticed", func() bool { w.Notify(2, storetest.Begin); return w.Check(ctx) != nil && other.Check(ctx) != nil })
	closing := d.Config
	began := time.Now()
	if err := other.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(began); took > prompt {
		t.Errorf("closed after %v", took)
	}
	p.frozen.Unlock()
	storetest.Until(t, "it is back", func() bool { return w.Check(ctx) == nil })
	again, err := store.Open(ctx, closing)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	remote = listening(again)
	storetest.Until(t, "hints are heard again", func() bool { w.Notify(3, storetest.Begin); return len(remote.heard()) > 0 })
}

// TestWakeupsOnSQLite checks that wakeups do nothing on SQLite, because there is no other node to wake.
func TestWakeupsOnSQLite(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	remote := listening(w.Store)
	w.Notify(1, storetest.Begin)
	if err := w.Close(); err != nil || len(remote.heard()) > 0 {
		t.Errorf("%v, %v", remote.heard(), err)
	}
}
