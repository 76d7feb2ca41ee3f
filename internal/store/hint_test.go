package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// hints are what a store heard, the last for each session.
type hints struct {
	mu   sync.Mutex
	all  map[puntuale.SessionID]time.Time
	late map[puntuale.SessionID]time.Time // the latest moment of each
}

func listening(s *store.Store) *hints {
	h := &hints{all: map[puntuale.SessionID]time.Time{}, late: map[puntuale.SessionID]time.Time{}}
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

func (h *hints) heard() map[puntuale.SessionID]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.all)
}

// patience is for what comes in milliseconds, or after a pause between attempts to connect.
const patience = 30 * time.Second

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// ears waits until n connections listen.
func ears(t *testing.T, w *storetest.World, n int64) {
	t.Helper()
	until(t, "the stores listen", func() bool {
		return w.Int("select count(*) from pg_stat_activity where datname = current_database() and application_name = 'puntuale listens' and query like 'listen %' and state = 'idle'") == n
	})
}

func TestHintsReachOtherNodes(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	other, silent := d.Open(t), d.Open(t)
	here, there := listening(w.Store), listening(other)
	ears(t, w, 2)
	due := storetest.Begin.Add(1234567 * time.Microsecond)
	w.Hint(7, due)
	w.Hint(7, due.Add(-time.Second)) // the latest is told, and then the earliest
	w.Hint(7, due.Add(-time.Millisecond))
	w.Hint(7, due.Add(-time.Second))
	w.Hint(8, time.Time{})
	w.Hint(0, time.Time{})
	w.Hint(puntuale.SessionID(puntuale.MaxID), due)
	want := map[puntuale.SessionID]time.Time{7: due.Add(-time.Second), 8: {}, 0: {}, puntuale.SessionID(puntuale.MaxID): due}
	until(t, "the other node heard", func() bool { return maps.Equal(there.heard(), want) })
	there.mu.Lock()
	if late := there.late[7]; !late.Equal(due) {
		t.Errorf("the latest moment heard is %v, want %v", late, due)
	}
	there.mu.Unlock()
	silent.Hint(9, due) // from one that does not listen
	until(t, "both nodes heard", func() bool { return here.heard()[9].Equal(due) && there.heard()[9].Equal(due) })
	if n := len(here.heard()); n != 1 {
		t.Errorf("a node heard %d hints, and among them its own", n)
	}
	silent.Hint(10, due)
	if err := silent.Close(); err != nil {
		t.Error(err)
	}
	until(t, "the last hint of a store that closed was heard", func() bool { return here.heard()[10].Equal(due) })
}

// A burst becomes a few notifications, each within what PostgreSQL takes, and what is beyond all measure is dropped.
func TestHintsAreFew(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	ctx := context.Background()
	raw, err := pgx.Connect(ctx, d.Config.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close(ctx)
	if _, err := raw.Exec(ctx, "listen puntuale_hint"); err != nil {
		t.Fatal(err)
	}
	const callers, sessions = 8, 3000
	began := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range 20 * sessions {
				w.Hint(puntuale.SessionID(1<<40+i%sessions), storetest.Begin.Add(time.Duration(i)))
			}
		})
	}
	all.Wait()
	rounds := 2 + int(time.Since(began)/(50*time.Millisecond))
	heard := map[puntuale.SessionID]bool{}
	var payloads int
	for len(heard) < sessions {
		wait, cancel := context.WithTimeout(ctx, patience)
		n, err := raw.WaitForNotification(wait)
		cancel()
		if err != nil {
			t.Fatalf("%d sessions of %d were told of: %v", len(heard), sessions, err)
		}
		if payloads++; len(n.Payload) >= 8000 {
			t.Errorf("a payload of %d bytes", len(n.Payload))
		}
		store.Hear(n.Payload[8:], func(session puntuale.SessionID, _ time.Time) { heard[session] = true })
	}
	const words = 2 * 20 // bytes of a session in a round: its first moment and its last
	if most := rounds * (1 + sessions*words/7900); payloads > most {
		t.Errorf("%d notifications of %d hints, want at most %d", payloads, callers*20*sessions, most)
	}
	t.Logf("%d hints in %v: %d notifications", callers*20*sessions, time.Since(began), payloads)
	for i := range 1_000_000 { // nobody waits, and memory stays small
		w.Hint(puntuale.SessionID(1+i), time.Time{})
	}
	if n := store.Waiting(w.Store); n > 4096 {
		t.Errorf("%d hints wait", n)
	}
}

// Connections that are cut come back by themselves, and nobody waits for them.
func TestHintsSurviveLostConnections(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	there := listening(d.Open(t))
	for i := range 5 {
		ears(t, w, 1)
		session, due := puntuale.SessionID(i+1), storetest.Begin.Add(time.Duration(i)*time.Second)
		until(t, fmt.Sprintf("hint %d was heard", i), func() bool { w.Hint(session, due); return there.heard()[session].Equal(due) })
		w.Exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name in ('puntuale hints', 'puntuale listens')")
	}
}

// A database that hangs holds up neither hints nor the store's end, and hints are heard again when it speaks again.
func TestHintsOfDatabaseThatHangs(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	p := behindProxy(t, d)
	w := storetest.NewWorld(t, d)
	other := d.Open(t)
	there := listening(other)
	ears(t, w, 1)
	w.Hint(1, storetest.Begin)
	until(t, "heard", func() bool { return len(there.heard()) == 1 })
	ctx := context.Background()
	p.frozen.Lock()
	until(t, "it is noticed", func() bool { w.Hint(2, storetest.Begin); return w.Check(ctx) != nil && other.Check(ctx) != nil })
	closing := d.Config
	began := time.Now()
	if err := other.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(began); took > prompt {
		t.Errorf("closed after %v", took)
	}
	p.frozen.Unlock()
	until(t, "it is back", func() bool { return w.Check(ctx) == nil })
	again, err := store.Open(ctx, closing)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	there = listening(again)
	until(t, "hints are heard again", func() bool { w.Hint(3, storetest.Begin); return len(there.heard()) > 0 })
}

// On SQLite there is nobody to tell.
func TestHintsOnSQLite(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.SQLite(t))
	there := listening(w.Store)
	w.Hint(1, storetest.Begin)
	if err := w.Close(); err != nil || len(there.heard()) > 0 {
		t.Errorf("%v, %v", there.heard(), err)
	}
}

// Of several moments of a session the latest and the earliest are told, also where it changed besides.
func TestWordsOfHints(t *testing.T) {
	t.Parallel()
	due := storetest.Begin
	for _, changed := range []bool{false, true} {
		var heard []time.Time
		store.Hear(store.Words(7, changed, due, due.Add(time.Second), due.Add(-time.Second)), func(_ puntuale.SessionID, at time.Time) {
			heard = append(heard, at)
		})
		want := []time.Time{due.Add(time.Second), due.Add(-time.Second)}
		if changed {
			want = append([]time.Time{{}}, want...)
		}
		if !slices.EqualFunc(heard, want, time.Time.Equal) {
			t.Errorf("changed %v: heard %v, want %v", changed, heard, want)
		}
	}
}

func FuzzHear(f *testing.F) {
	for _, payload := range []string{"", " 1", "1.2", "1!2 z.zz", "-1 . ! 1. 1.x x!", "zzzzzzzzzzzzzzzzzzzzz.1"} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		var again string
		heard := map[puntuale.SessionID]time.Time{}
		store.Hear(payload, func(session puntuale.SessionID, due time.Time) {
			if session < 0 {
				t.Errorf("session %d", session)
			}
			if _, twice := heard[session]; twice {
				return
			}
			heard[session] = due
			again += " " + store.Word(session, due)
		})
		store.Hear(again, func(session puntuale.SessionID, due time.Time) {
			if want, ok := heard[session]; !ok || !want.Equal(due) {
				t.Errorf("%q was heard as %q: session %d at %v, not %v", payload, again, session, due, want)
			}
		})
	})
}
