package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/store/storetest"
)

// TestSandboxEndToEnd uses each special ending of a sandbox phone number, with the real store, in the fake time of a
// bubble.
func TestSandboxEndToEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			cfg := w.config()
			cfg.UncertainAfter = 3 * time.Minute
			d := w.dispatch(t, cfg)
			now := time.Now()
			ids := map[string]puntuale.MessageID{}
			for _, phone := range []string{"+393470001000", "+393470009901", "+393470009902", "+393470009903", "+393470009904", "120363024@g.us"} {
				ids[phone] = w.start(t, phone, 48*time.Hour, now)[0]
			}
			d.Wake(w.session, now)
			time.Sleep(time.Second)
			check := func(phone string, state puntuale.State, reason puntuale.ReasonCode, attempts, rows, copies int) {
				t.Helper()
				m := w.message(t, ids[phone])
				r, c := w.copies(t)
				if m.State != state || m.Reason.Code != reason || m.Attempt != attempts || r[m.ID] != rows || c[m.ID] != copies {
					t.Errorf("%s is %v %q after %d attempts with %d rows and %d copies; want %v %q, %d, %d, %d",
						phone, m.State, m.Reason, m.Attempt, r[m.ID], c[m.ID], state, reason, attempts, rows, copies)
				}
			}
			check("+393470001000", puntuale.Completed, "", 1, 1, 1)
			check("120363024@g.us", puntuale.Completed, "", 1, 1, 1)
			check("+393470009901", puntuale.Failed, "sandbox.refused", 1, 0, 0)
			check("+393470009902", puntuale.Pending, w.message(t, ids["+393470009902"]).Reason.Code, 1, 0, 0)
			check("+393470009903", puntuale.Pending, "", 1, 1, 1)
			check("+393470009904", puntuale.Pending, "", 1, 1, 1)
			time.Sleep(2 * time.Second)
			check("+393470009903", puntuale.Completed, "", 1, 1, 1)
			time.Sleep(8 * time.Second)
			check("+393470009902", puntuale.Completed, "", 2, 1, 1)
			check("+393470009904", puntuale.Pending, "", 2, 1, 2)
			time.Sleep(2 * time.Minute)
			check("+393470009904", puntuale.Pending, "", 4, 1, 4)
			time.Sleep(time.Minute)
			check("+393470009904", puntuale.Failed, puntuale.ReasonUncertain, 4, 1, 4)
			if m := w.message(t, ids["+393470001000"]); m.LeftAt().Before(now) || m.LeftAt().After(now.Add(time.Second)) {
				t.Errorf("it left at %v, want at %v", m.LeftAt(), now)
			}
		})
	})
}

// TestStoreExpiry checks that the reason is stored if a message could not leave in time.
func TestStoreExpiry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			cfg := w.config()
			cfg.Connector = func(puntuale.Session) puntuale.Connector { return nil }
			d := w.dispatch(t, cfg)
			id := w.start(t, "+393470001000", time.Minute, time.Now())[0]
			d.Wake(w.session, time.Now())
			time.Sleep(59 * time.Second)
			if m := w.message(t, id); m.State != puntuale.Pending {
				t.Errorf("before its end it is %v", m.State)
			}
			time.Sleep(3 * time.Second)
			if m := w.message(t, id); m.State != puntuale.Failed || m.Reason.Code != puntuale.ReasonNotLinked {
				t.Errorf("after its end it is %v %q", m.State, m.Reason)
			}
		})
	})
}

// TestBlacklist checks that a number gets nothing if it is in the blacklist at the due time.
func TestBlacklist(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			w.dispatch(t, w.config())
			now := time.Now()
			ids := w.start(t, "+393470001000", time.Hour, now.Add(time.Second), now.Add(time.Minute))
			time.Sleep(30 * time.Second)
			if err := w.tenant.AddBlacklisted(t.Context(), puntuale.BlacklistEntry{Phone: "+393470001000", Added: now}, puntuale.DateOf(now), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if a, b := w.message(t, ids[0]), w.message(t, ids[1]); a.State != puntuale.Completed || b.State != puntuale.Blacklisted {
				t.Errorf("before: %v, after: %v; want COMPLETED, BLACKLISTED", a.State, b.State)
			}
			if got := len(w.ledger(t)); got != 1 {
				t.Errorf("%d messages arrived, want 1", got)
			}
		})
	})
}

// TestCreditRescues checks that messages of a client without credits wait. Each new credit allows one message to leave.
// The others expire, and their reason is stored.
func TestCreditRescues(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			w.exec(t, fmt.Sprintf("update client set credits = 2 where id = %d", w.client))
			w.dispatch(t, w.config())
			var ids []puntuale.MessageID
			for i := range 10 {
				ids = append(ids, w.start(t, phoneOf(i), 2*time.Minute, time.Now())...)
			}
			time.Sleep(time.Minute)
			if got := w.states(t, ids); got[puntuale.Completed] != 2 || got[puntuale.Pending] != 8 {
				t.Errorf("with two credits: %v", got)
			}
			w.exec(t, fmt.Sprintf("update client set credits = 3 where id = %d", w.client))
			time.Sleep(3 * time.Second)
			if got := w.states(t, ids); got[puntuale.Completed] != 5 || got[puntuale.Pending] != 5 {
				t.Errorf("with three more: %v", got)
			}
			time.Sleep(time.Minute)
			if got := w.states(t, ids); got[puntuale.Completed] != 5 || got[puntuale.Failed] != 5 {
				t.Errorf("at their end: %v", got)
			}
			if m := w.message(t, ids[9]); m.Reason.Code != puntuale.ReasonNoCredit {
				t.Errorf("the last one says %q", m.Reason)
			}
		})
	})
}

// TestStoreOrder checks that messages to one recipient arrive in order, whatever happens to messages to other
// recipients.
func TestStoreOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			d := w.dispatch(t, w.config())
			now := time.Now()
			want := map[string][]puntuale.MessageID{}
			for i := range 8 {
				phone := fmt.Sprintf("+3934700010%02d", i)
				if i%2 == 1 {
					phone = fmt.Sprintf("+39347%03d9902", i)
				}
				for range 3 {
					want[phone] = append(want[phone], w.start(t, phone, time.Hour, now, now.Add(time.Second))...)
				}
				d.Wake(w.session, now)
			}
			time.Sleep(time.Minute)
			got := map[string][]puntuale.MessageID{}
			for _, m := range w.ledger(t) {
				got[m.Phone] = append(got[m.Phone], m.Message)
			}
			for phone, ids := range want {
				// The recipient has three runs. The first messages of all runs come first, and then their second
				// messages.
				order := []puntuale.MessageID{ids[0], ids[2], ids[4], ids[1], ids[3], ids[5]}
				if fmt.Sprint(got[phone]) != fmt.Sprint(order) {
					t.Errorf("%s got %v, want %v", phone, got[phone], order)
				}
			}
		})
	})
}

// TestCancelledIsNeverSent cancels messages before, at and after the time of their claims. A message that a
// cancellation's answer names must never reach the network. All other messages must reach it.
func TestCancelledIsNeverSent(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		w := open(t)
		d := w.dispatch(t, w.config())
		const phones = 60
		due := time.Now().Add(2 * time.Second)
		all := make([]puntuale.MessageID, phones)
		cancelled := map[puntuale.MessageID]bool{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for i := range phones {
			wait.Go(func() { all[i] = w.start(t, phoneOf(i), time.Hour, due)[0] })
		}
		wait.Wait()
		d.Wake(w.session, due)
		for i := range phones {
			wait.Go(func() {
				// All cancellations happen after the messages were read and prepared. Only the claim, which reads the
				// disk, can notice them. One third happen 800 ms before the due time. The others race with the claims.
				at := due.Add(-800 * time.Millisecond)
				if i%3 > 0 {
					at = due.Add(time.Duration(i-phones/2) * time.Millisecond / 2)
				}
				<-time.After(time.Until(at))
				got, err := storetest.CancelPending(t.Context(), w.tenant, []string{phoneOf(i)}, false, puntuale.DateOf(due), time.Now())
				if err != nil {
					t.Errorf("cancel: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, m := range got {
					cancelled[m.ID] = true
				}
			})
		}
		wait.Wait()
		eventually(t, "every message is closed", func() bool { return w.states(t, all)[puntuale.Pending] == 0 })
		if err := d.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		rows, _ := w.copies(t)
		for _, id := range all {
			switch m := w.message(t, id); {
			case cancelled[id] != (m.State == puntuale.Cancelled):
				t.Errorf("message %d is %v; a cancellation answered it: %v", id, m.State, cancelled[id])
			case cancelled[id] && rows[id] > 0:
				t.Errorf("message %d was cancelled, yet it reached the network", id)
			case !cancelled[id] && rows[id] != 1:
				t.Errorf("message %d is in the ledger %d times, want once", id, rows[id])
			}
		}
		if len(cancelled) < phones/3 {
			t.Errorf("only %d of %d were cancelled: the test shows nothing", len(cancelled), len(all))
		}
	})
}

func phoneOf(i int) string { return fmt.Sprintf("+3934700010%02d", i) }

// TestObserve checks that the observer gets each message when it leaves.
func TestObserve(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		w := open(t)
		cfg := w.config()
		seen := make(chan string, 1)
		cfg.Observe = func(m puntuale.DueMessage, c puntuale.Content, o puntuale.Outcome) {
			seen <- fmt.Sprint(m.Phone, " ", c.Text != "", " ", o.Verdict)
		}
		d := w.dispatch(t, cfg)
		w.start(t, "+393470001000", time.Hour, time.Now())
		d.Wake(w.session, time.Now())
		if got := <-seen; got != "+393470001000 true sent" {
			t.Errorf("observed %q", got)
		}
	})
}

// TestStoppedInFlight stops a message while it is being sent. The message must not be sent again. If the network
// refuses the message for now, the message becomes CANCELLED. If the network's answer is lost, the message is not
// repeated. If the network accepts the message, the message becomes COMPLETED.
func TestStoppedInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			c := sandbox.New(w.store, clock.System(), time.Second)
			cfg := w.config()
			cfg.UncertainAfter = 3 * time.Minute
			cfg.Connector = func(puntuale.Session) puntuale.Connector { return c }
			d := w.dispatch(t, cfg)
			now := time.Now()
			phones := []string{"+393470001000", "+393470009902", "+393470009904"}
			var ids []puntuale.MessageID
			for _, phone := range phones {
				ids = append(ids, w.start(t, phone, time.Hour, now)[0])
			}
			d.Wake(w.session, now)
			time.Sleep(500 * time.Millisecond)
			if got, err := storetest.CancelPending(t.Context(), w.tenant, phones, false, puntuale.DateOf(now), time.Now()); err != nil || len(got) != 0 {
				t.Fatalf("in flight: %v, %v", got, err)
			}
			later := w.start(t, phones[1], time.Hour, now)[0] // a message of another run
			d.Wake(w.session, now)
			time.Sleep(90 * time.Second)
			rows, copies := w.copies(t)
			for i, want := range []struct {
				state          puntuale.State
				attempts, rows int
			}{{puntuale.Completed, 1, 1}, {puntuale.Cancelled, 1, 0}, {puntuale.Pending, 1, 1}} {
				m := w.message(t, ids[i])
				if m.State != want.state || m.Attempt != want.attempts || rows[m.ID] != want.rows || copies[m.ID] != want.rows {
					t.Errorf("%s is %v after %d attempts, with %d rows and %d copies", phones[i], m.State, m.Attempt, rows[m.ID], copies[m.ID])
				}
			}
			if m := w.message(t, later); m.State != puntuale.Completed {
				t.Errorf("a later run to the same number is %v", m.State)
			}
			time.Sleep(2 * time.Minute)
			if m := w.message(t, ids[2]); m.State != puntuale.Failed || m.Reason.Code != puntuale.ReasonUncertain {
				t.Errorf("at its deadline it is %v %q", m.State, m.Reason)
			}
		})
	})
}
