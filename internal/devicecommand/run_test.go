package devicecommand

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"puntuale/internal/client"
)

// bubble runs a test in fake time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// untilDecided stops the process at the first call that takes messages after all messages have an outcome.
func (w *world) untilDecided() {
	before := w.fault
	w.fault = func(call string, n int) fault {
		if call == "POST /device/take" && w.decided() {
			w.life.stop()
		}
		return before(call, n)
	}
}

// check compares the effects of the command with the server's data.
func (w *world) check(t *testing.T, unknown int) {
	t.Helper()
	n := 0
	for _, m := range w.all {
		switch {
		case w.ran[m.id] > 1:
			t.Errorf("message %d was sent %d times", m.id, w.ran[m.id])
		case m.outcome == client.Unknown:
			n++
		case m.outcome != client.Sent || w.ran[m.id] != 1:
			t.Errorf("message %d was sent %d times, and is %q", m.id, w.ran[m.id], m.outcome)
		}
	}
	if n > unknown {
		t.Errorf("%d messages are unknown, want at most %d", n, unknown)
	}
	for _, a := range w.attempts {
		if a.recorded > 1 {
			t.Errorf("attempt %s was recorded %d times", a.id, a.recorded)
		}
	}
}

// TestKilledAtEachMoment kills the device at every point at which it calls the server, gets an answer, or begins or
// ends a command. The next process finishes the work: nothing is sent twice, every report arrives once, and at most one
// outcome is unknown.
func TestKilledAtEachMoment(t *testing.T) {
	t.Parallel()
	for _, dedupes := range []bool{false, true} {
		at := 1
		for ; !t.Failed() && killedAt(t, dedupes, at); at++ {
		}
		if at < 25 {
			t.Errorf("dedupes %t: only %d moments", dedupes, at)
		}
	}
}

// killedAt runs a device that is killed at point number at. It returns false if the run has fewer points.
func killedAt(t *testing.T, dedupes bool, at int) (killed bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		w.dedupes = dedupes
		w.untilDecided()
		moments := 0
		w.point = func() {
			if moments++; moments == at {
				killed = true
				w.kill()
			}
		}
		err := w.run(w.send)
		if killed {
			if dedupes {
				_ = w.clock.Sleep(t.Context(), 2*time.Minute) // the holds end, and the server offers messages without a report again
			}
			err = w.run(w.send)
		}
		if err != nil {
			t.Error(err)
		}
		if w.check(t, 1); t.Failed() {
			t.Logf("dedupes %t, killed at moment %d of %q", dedupes, at, w.calls)
		}
	})
	return killed
}

// TestAnswersAreLost loses the answer to each call once. If a call takes messages, the device repeats it with the same
// id, and the server recognises repeated reports.
func TestAnswersAreLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 5)
		lost := map[string]bool{}
		w.fault = func(call string, n int) fault {
			if n%2 == 1 && !lost[fmt.Sprint(call, len(lost)/2)] {
				lost[fmt.Sprint(call, len(lost)/2)] = true
				return fault{lost: true}
			}
			return fault{}
		}
		w.untilDecided()
		if err := w.run(w.send); err != nil {
			t.Fatal(err)
		}
		w.check(t, 0)
		if len(w.attempts) != 5 || len(lost) < 5 {
			t.Errorf("%d attempts, %d answers lost", len(w.attempts), len(lost))
		}
	})
}

// TestHoldsAreRenewed: a command may take longer than the lease. The device still holds the messages that wait for this
// command.
func TestHoldsAreRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.untilDecided()
		err := w.run(func(m json.RawMessage) (client.Outcome, string, error) {
			for range 50 {
				_ = w.clock.Sleep(t.Context(), 10*time.Second)
				w.locked(func() {
					if n := len(w.show(func(*attempt) bool { return true })); n != 4-w.id(m) {
						t.Errorf("%d messages are held while %d is sent", n, w.id(m))
					}
				})
			}
			return w.send(m)
		})
		if err != nil {
			t.Fatal(err)
		}
		w.check(t, 0)
	})
}

// TestHoldsEnd: while the server does not answer, the device begins no message. It sends no message whose hold ended in
// this time.
func TestHoldsEnd(t *testing.T) {
	for _, dedupes := range []bool{false, true} {
		t.Run(fmt.Sprintf("dedupes=%t", dedupes), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 3)
				w.dedupes = dedupes
				away := false
				w.fault = func(string, int) fault { return fault{away: away} }
				w.untilDecided()
				err := w.run(func(m json.RawMessage) (client.Outcome, string, error) {
					w.locked(func() {
						if w.id(m) == 1 {
							away = true
							time.AfterFunc(10*time.Minute, func() { w.locked(func() { away = false }) })
						} else if away {
							t.Error("a message was begun without a server")
						}
					})
					return w.send(m)
				})
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range w.all[1:] {
					if !dedupes && (m.outcome != client.Refused || m.detail != saysTooLate || w.ran[m.id] != 0) {
						t.Errorf("message %d is %q (%s), sent %d times", m.id, m.outcome, m.detail, w.ran[m.id])
					}
				}
				if dedupes {
					w.check(t, 0) // the server offered all messages again
				}
			})
		})
	}
}

// TestTakenAgain: if a message is taken again, the device reports the outcome in its journal, and does not run the
// command.
func TestTakenAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.dedupes = true
		w.fault = func(call string, n int) fault {
			if len(w.ran) == 0 {
				return fault{}
			}
			return fault{away: true}
		}
		if err := w.run(func(m json.RawMessage) (client.Outcome, string, error) {
			w.life.stop()
			return w.send(m)
		}); err != nil {
			t.Fatal(err)
		}
		if w.decided() {
			t.Fatal("the report arrived")
		}
		_ = w.clock.Sleep(t.Context(), time.Hour)
		w.take(t.Context(), order{Take: "answer on its way", Max: 1, Lease: 60}) // a second call takes the message again, with a new attempt
		w.fault = func(string, int) fault { return fault{} }
		w.untilDecided()
		if err := w.run(w.send); err != nil {
			t.Fatal(err)
		}
		_ = w.clock.Sleep(t.Context(), time.Hour)
		if err := w.run(w.send); err != nil {
			t.Fatal(err)
		}
		w.check(t, 0)
	})
}

// TestUnlinked: a token that the server does not know ends the device at once.
func TestUnlinked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 3)
		var at time.Time
		err := w.run(func(m json.RawMessage) (client.Outcome, string, error) {
			w.locked(func() { w.unlinked, at = true, w.clock.Now() })
			return w.send(m)
		})
		if !errors.Is(err, client.ErrUnlinked) || len(w.ran) != 1 || !w.clock.Now().Equal(at) {
			t.Errorf("%v after %d messages and %s", err, len(w.ran), w.clock.Now().Sub(at))
		}
	})
}

// TestRefusals: the device repeats a call that may succeed later, but not earlier than the server requests. A permanent
// refusal ends the device with an error.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		fault
		least, most time.Duration // the wait until the next call; 0: there is no next call
	}{
		{fault{status: http.StatusTooManyRequests, after: "90"}, 90 * time.Second, 91 * time.Second},
		{fault{status: http.StatusServiceUnavailable, after: "Sat, 01 Jan 2000 00:05:00 GMT"}, 290 * time.Second, 301 * time.Second},
		{fault{status: http.StatusServiceUnavailable, after: "999999999999"}, time.Hour, time.Hour + time.Second},
		{fault{status: http.StatusBadGateway}, time.Second / 2, time.Second},
		{fault{status: http.StatusInternalServerError}, time.Second / 2, time.Second},
		{fault{status: http.StatusOK}, time.Second / 2, time.Second}, // the answer is no JSON
		{fault{away: true}, time.Second / 2, time.Second},
		{fault{status: http.StatusNotFound}, 0, 0},
		{fault{status: http.StatusUnprocessableEntity}, 0, 0},
		{fault{status: http.StatusFound}, 0, 0},
	} {
		t.Run(fmt.Sprint(c.fault), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var failed, next time.Time
				w.fault = func(call string, n int) fault {
					switch n {
					case 2:
						failed = w.clock.Now()
						return c.fault
					case 3:
						next = w.clock.Now()
					}
					return fault{}
				}
				w.untilDecided()
				err := w.run(w.send)
				if c.least == 0 {
					if err == nil || len(w.ran) > 0 {
						t.Errorf("%v", err)
					}
					return
				}
				if took := next.Sub(failed); err != nil || took < c.least || took > c.most {
					t.Errorf("%v, asked again after %s", err, took)
				}
			})
		})
	}
}

// TestStopped: a device that must stop waits for its command to end. It returns all other messages, including messages
// that it took in a call without an answer.
func TestStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 5)
		err := w.run(func(m json.RawMessage) (client.Outcome, string, error) {
			w.life.stop()
			_ = w.clock.Sleep(t.Context(), 3*time.Minute)
			return w.send(m)
		})
		if err != nil || w.all[0].outcome != client.Sent || len(w.ran) != 1 {
			t.Errorf("%v, %q, %d sent", err, w.all[0].outcome, len(w.ran))
		}
		w.fault = func(call string, n int) fault {
			return fault{lost: call == "POST /device/take", stops: call == "POST /device/take"}
		}
		if err := w.run(w.send); err != nil {
			t.Error(err)
		}
		returned := 0
		for _, a := range w.attempts {
			if a.outcome == client.Returned {
				returned++
			}
		}
		if held := w.show(func(*attempt) bool { return true }); len(held) != 0 || returned != 5 || len(w.ran) != 1 {
			t.Errorf("%d are held, %d were returned, %d sent", len(held), returned, len(w.ran))
		}
	})
}

// TestReturned: if the command cannot send, the device waits longer after each try.
func TestReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		began, tries := w.clock.Now(), 0
		w.untilDecided()
		err := w.run(func(m json.RawMessage) (client.Outcome, string, error) {
			if tries++; w.clock.Now().Sub(began) < time.Hour {
				return client.Returned, "no line", nil
			}
			return w.send(m)
		})
		if err != nil || tries < 60 || tries > 150 {
			t.Errorf("%v, %d tries in an hour", err, tries)
		}
		w.check(t, 0)
	})
}

// TestCommandFails: a command that cannot be run ends the device. The device first reports and returns everything.
func TestCommandFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, 3)
		broken := errors.New("not found")
		err := w.run(func(json.RawMessage) (client.Outcome, string, error) { return client.Unknown, "", broken })
		if !errors.Is(err, broken) || w.all[0].outcome != client.Unknown || len(w.show(func(*attempt) bool { return true })) != 0 {
			t.Errorf("%v, %q", err, w.all[0].outcome)
		}
	})
}

// TestIdle: without messages, the device sends one request for each wait. If the server does not wait, the device
// pauses before the next request.
func TestIdle(t *testing.T) {
	for _, waits := range []bool{true, false} {
		t.Run(fmt.Sprintf("waits=%t", waits), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, 0)
				w.fault = func(string, int) fault { return fault{} }
				time.AfterFunc(10*time.Minute, func() { w.locked(func() { w.life.stop() }) })
				w.hasty = !waits
				if err := w.run(w.send); err != nil {
					t.Fatal(err)
				}
				takes := strings.Count(strings.Join(w.calls, "\n"), "POST /device/take")
				if limit := map[bool]int{true: 21, false: 601}[waits]; takes > limit || takes < limit*9/10 {
					t.Errorf("%d takes in ten minutes", takes)
				}
			})
		})
	}
}
