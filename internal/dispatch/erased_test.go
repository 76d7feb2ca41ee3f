package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
)

// TestErasedNumberGetsNothing blacklists a number that was then erased, so that the store has only its keyed hash.
// Messages to the client's other recipients leave on time. This includes the first message. The answer to the first
// message's claim informs the dispatcher that it must use keyed hashes.
func TestErasedNumberGetsNothing(t *testing.T) {
	t.Parallel()
	const blocked, free = "+393470001000", "+393470002000"
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			cfg := w.config()
			cfg.Mark = func(client puntuale.ClientID, phone string) string {
				return fmt.Sprint("~", client, len(phone), phone[8:])
			}
			w.dispatch(t, cfg)
			now := time.Now()
			day := puntuale.DateOf(now)
			if err := w.tenant.AddBlacklisted(t.Context(), puntuale.BlacklistEntry{Phone: blocked, Added: now}, day, nil); err != nil {
				t.Fatal(err)
			}
			first := w.start(t, free, time.Hour, now.Add(time.Second))
			time.Sleep(5 * time.Second)
			old := w.start(t, blocked, time.Hour, now.Add(time.Hour))
			if _, err := w.tenant.Erase(t.Context(), puntuale.Erasure{Person: puntuale.Person{Names: []string{blocked}, Mark: func(name string) string { return cfg.Mark(w.client, name) }}, Day: day, Now: time.Now()}); err != nil {
				t.Fatal(err)
			}
			due := time.Now().Add(10 * time.Second)
			ids := append(w.start(t, free, time.Hour, due, due.Add(time.Minute)), w.start(t, blocked, time.Hour, due, due.Add(time.Minute))...)
			time.Sleep(2 * time.Minute)
			for id, want := range map[puntuale.MessageID]puntuale.State{first[0]: puntuale.Completed, old[0]: puntuale.Cancelled,
				ids[0]: puntuale.Completed, ids[1]: puntuale.Completed, ids[2]: puntuale.Blacklisted, ids[3]: puntuale.Blacklisted} {
				if m := w.message(t, id); m.State != want {
					t.Errorf("message %d is %v, want %v", id, m.State, want)
				}
			}
			if m := w.message(t, ids[0]); m.LeftAt().Sub(due) > 500*time.Millisecond {
				t.Errorf("the first one left %v late", m.LeftAt().Sub(due))
			}
			if got := len(w.ledger(t)); got != 3 {
				t.Errorf("%d messages arrived, want 3", got)
			}
		})
	})
}

// TestNothingEmptyIsSent checks that a message without content becomes FAILED and never reaches the connector, whatever
// removed the content.
func TestNothingEmptyIsSent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			due := time.Now().Add(time.Minute)
			ids := append(w.start(t, "+393470001000", time.Hour, due), w.start(t, "+393470002000", time.Hour, due)...)
			w.exec(t, fmt.Sprintf("update run set content = '[]' where id = %d", ids[0]))
			w.exec(t, fmt.Sprintf(`update run set content = '[{"step":0,"content":{}}]' where id = %d`, ids[1]))
			w.dispatch(t, w.config())
			time.Sleep(2 * time.Minute)
			for _, id := range ids {
				if m := w.message(t, id); m.State != puntuale.Failed {
					t.Errorf("message %d is %v", id, m.State)
				}
			}
			if got := w.ledger(t); len(got) != 0 {
				t.Errorf("%v arrived", got)
			}
		})
	})
}
