package fleet_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"puntuale"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/storetest"
)

const maxWait = 30 * time.Second

// TestWakeupsAreFew checks that many wakeups become a few notifications, and that no notification is longer than
// PostgreSQL accepts. Wakeups of at most 4,096 sessions wait
// to be sent. Further wakeups are dropped.
func TestWakeupsAreFew(t *testing.T) {
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
				w.Notify(puntuale.SessionID(1<<40+i%sessions), storetest.Begin.Add(time.Duration(i)))
			}
		})
	}
	all.Wait()
	rounds := 2 + int(time.Since(began)/(50*time.Millisecond))
	heard := map[puntuale.SessionID]bool{}
	var payloads int
	for len(heard) < sessions {
		wait, cancel := context.WithTimeout(ctx, maxWait)
		n, err := raw.WaitForNotification(wait)
		cancel()
		if err != nil {
			t.Fatalf("%d sessions of %d were told of: %v", len(heard), sessions, err)
		}
		if payloads++; len(n.Payload) >= 8000 {
			t.Errorf("a payload of %d bytes", len(n.Payload))
		}
		fleet.ReadPayload(n.Payload[8:], func(session puntuale.SessionID, _ time.Time) { heard[session] = true })
	}
	const words = 2 * 20 // largest number of bytes for one session: one word for its first due time, and one for its last
	if limit := rounds * (1 + sessions*words/7900); payloads > limit {
		t.Errorf("%d notifications of %d hints, want at most %d", payloads, callers*20*sessions, limit)
	}
	t.Logf("%d hints in %v: %d notifications", callers*20*sessions, time.Since(began), payloads)
	for i := range 1_000_000 { // Notify must not block, and memory must stay small
		w.Notify(puntuale.SessionID(1+i), time.Time{})
	}
	if n := fleet.Waiting(w.Store.Fleet); n > 4096 {
		t.Errorf("%d hints wait", n)
	}
}

// TestWordsOfWakeups checks payloads for sessions with several due times. A payload must contain the latest and the
// earliest time, even if the session also changed.
func TestWordsOfWakeups(t *testing.T) {
	t.Parallel()
	due := storetest.Begin
	for _, changed := range []bool{false, true} {
		var heard []time.Time
		fleet.ReadPayload(fleet.Words(7, changed, due, due.Add(time.Second), due.Add(-time.Second)), func(_ puntuale.SessionID, at time.Time) {
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
		fleet.ReadPayload(payload, func(session puntuale.SessionID, due time.Time) {
			if session < 0 {
				t.Errorf("session %d", session)
			}
			if _, twice := heard[session]; twice {
				return
			}
			heard[session] = due
			again += " " + fleet.Word(session, due)
		})
		fleet.ReadPayload(again, func(session puntuale.SessionID, due time.Time) {
			if want, ok := heard[session]; !ok || !want.Equal(due) {
				t.Errorf("%q was heard as %q: session %d at %v, not %v", payload, again, session, due, want)
			}
		})
	})
}
