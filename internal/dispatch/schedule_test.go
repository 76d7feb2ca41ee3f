package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func transient() error {
	return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Quoted("Rete non disponibile"), Detail: puntuale.Quoted("test")}
}

// TestOnTime uses a message that the dispatcher read before its due time. The message must leave at its due time, exact
// to the microsecond, and never earlier.
func TestOnTime(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		due := time.Now().Add(3*time.Second + 123_456*time.Microsecond)
		id := m.add(1, "+391", due)[0]
		after(10 * time.Second)
		if at := n.of(id); len(at) != 1 || !at[0].Equal(due) {
			t.Errorf("handed over %v, want once at %v", at, due)
		}
		if r := m.get(id); r.state != puntuale.Completed {
			t.Errorf("the row is %v", r.state)
		}
	})
}

// TestWakeup uses a message that is due immediately. After a wakeup, it must leave immediately. Without a wakeup, it
// must leave within the poll's interval.
func TestWakeup(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(300 * time.Millisecond)
		now := time.Now()
		id := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		synctest.Wait()
		if at := n.of(id); len(at) != 1 || !at[0].Equal(now) {
			t.Errorf("woken: handed over %v, want at %v", at, now)
		}
		id = m.add(1, "+392", now)[0]
		after(time.Second)
		if at := n.of(id); len(at) != 1 {
			t.Errorf("not woken: handed over %d times within the poll, want once", len(at))
		}
	})
}

// TestBusySessionIsPolled checks that a message without a wakeup leaves within the poll's interval, even in a session
// with many messages in memory. The poll reads such sessions one after the other.
func TestBusySessionIsPolled(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		for i := range 1_200 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now().Add(time.Duration(i)*10*time.Millisecond))
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		due := map[puntuale.MessageID]time.Time{}
		for i := range 40 {
			after(237 * time.Millisecond)
			due[m.add(1, fmt.Sprintf("+40%d", i), time.Now())[0]] = time.Now()
		}
		after(3 * time.Second)
		for id, moment := range due {
			if at := n.of(id); len(at) != 1 || at[0].Sub(moment) > 1100*time.Millisecond {
				t.Errorf("due at %v, handed over at %v", moment, at)
			}
		}
		if got := len(n.sightings()); got != 1_240 {
			t.Errorf("%d left in all", got)
		}
	})
}

// TestWakeupOfFirstStep checks that one wakeup for a run's first due time also covers the steps that are due before the
// next poll.
func TestWakeupOfFirstStep(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(1050 * time.Millisecond)
		now := time.Now()
		due := []time.Time{now}
		for i := range 20 {
			due = append(due, now.Add(time.Duration(i+1)*137*time.Millisecond))
		}
		ids := m.add(1, "+391", due...)
		d.Wake(1, now)
		after(5 * time.Second)
		for i, id := range ids {
			if at := n.of(id); len(at) != 1 || !at[0].Equal(due[i]) {
				t.Errorf("step %d left at %v, want %v", i, at, due[i])
			}
		}
	})
}

// TestWakeupAmongMany first lets the dispatcher read thousands of messages with later due times. A new message that is
// due immediately must not wait behind these messages.
func TestWakeupAmongMany(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		for i := range 25_000 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now().Add(1900*time.Millisecond+time.Duration(i)*time.Microsecond))
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(1500 * time.Millisecond)
		now := time.Now()
		id := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		synctest.Wait()
		if at := n.of(id); len(at) != 1 || !at[0].Equal(now) {
			t.Errorf("left at %v, want %v", at, now)
		}
		after(10 * time.Second)
		if got := len(n.sightings()); got != 25_001 {
			t.Errorf("%d left in all", got)
		}
	})
}

// TestWakeupsNeverLost sends many wakeups while a read is running. The dispatcher must find the message of the last
// wakeup.
func TestWakeupsNeverLost(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(100 * time.Millisecond)
		var ids []puntuale.MessageID
		for i := range 300 {
			ids = append(ids, m.add(1, fmt.Sprintf("+39%d", i), time.Now())...)
			d.Wake(1, time.Now())
		}
		synctest.Wait()
		for _, id := range ids {
			if len(n.of(id)) != 1 {
				t.Fatalf("message %d was handed over %d times", id, len(n.of(id)))
			}
		}
	})
}

// TestFairQueue checks that a client with a backlog does not delay the few messages of another client.
func TestFairQueue(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		m.session(2, 2, 0)
		m.commit = 10 * time.Millisecond
		for i := range 8000 {
			m.add(1, fmt.Sprintf("+391%d", i), time.Now())
		}
		for i := range 10 {
			m.add(2, fmt.Sprintf("+392%d", i), time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(30 * time.Second)
		seen := map[puntuale.SessionID]int{}
		var last time.Time
		for _, s := range n.sightings() {
			seen[s.Session]++
			if s.Session == 2 {
				last = s.at
			}
		}
		if seen[1] != 8000 || seen[2] != 10 {
			t.Fatalf("handed over %v", seen)
		}
		if took := last.Sub(began); took > 100*time.Millisecond {
			t.Errorf("the small client waited %v", took)
		}
	})
}

// TestOrder checks that messages to one recipient leave in the order of due time, run and step, one after the other.
// Messages to other recipients do not wait.
func TestOrder(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, _ *memory, n *network) {
		n.send = func(ctx context.Context, p puntuale.Prepared) error {
			time.Sleep(time.Second)
			return nil
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		now := time.Now().Add(5 * time.Second)
		a := m.add(1, "+391", now, now, now.Add(time.Millisecond))
		b := m.add(1, "+391", now.Add(-time.Millisecond), now)
		c := m.add(1, "+392", now)
		after(20 * time.Second)
		var order []puntuale.MessageID
		for _, s := range n.sightings() {
			if s.To == "+391" {
				order = append(order, s.Message)
			}
		}
		if want := []puntuale.MessageID{b[0], a[0], a[1], b[1], a[2]}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if at := n.of(c[0]); len(at) != 1 || !at[0].Equal(now) {
			t.Errorf("another recipient's message left at %v, want %v", at, now)
		}
		if at := n.of(a[2]); !at[0].Equal(justBefore(now, 4*time.Second)) {
			t.Errorf("the fifth left at %v, want %v", at[0], justBefore(now, 4*time.Second))
		}
	})
}

// justBefore adds d to now, and subtracts one millisecond. The first message to the recipient is due one millisecond
// before now.
func justBefore(now time.Time, d time.Duration) time.Time { return now.Add(d - time.Millisecond) }

// TestRetryHoldsOrder checks that a message in retry holds back later messages to its recipient for at most a minute.
func TestRetryHoldsOrder(t *testing.T) {
	t.Parallel()
	t.Run("until it left", func(t *testing.T) {
		t.Parallel()
		setup := func(_ *dispatch.Config, _ *memory, n *network) {
			n.send = func(_ context.Context, p puntuale.Prepared) error {
				if p.To == "+391" && p.Attempt == 1 && p.Content.Text == "1001" {
					return transient()
				}
				return nil
			}
		}
		bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
			now := time.Now()
			ids := m.add(1, "+391", now, now.Add(2*time.Second))
			after(20 * time.Second)
			if got, want := n.order(), []puntuale.MessageID{ids[0], ids[0], ids[1]}; !slices.Equal(got, want) {
				t.Errorf("order %v, want %v", got, want)
			}
			retried := n.of(ids[0])[1]
			if wait := retried.Sub(now); wait < 5*time.Second || wait > 10*time.Second {
				t.Errorf("retried after %v, want 5 to 10 s", wait)
			}
			if !n.of(ids[1])[0].Equal(retried) {
				t.Errorf("the later one left at %v, want right after the retry at %v", n.of(ids[1])[0], retried)
			}
		})
	})
	t.Run("a minute at most", func(t *testing.T) {
		t.Parallel()
		setup := func(_ *dispatch.Config, _ *memory, n *network) {
			n.send = func(_ context.Context, p puntuale.Prepared) error {
				if p.Content.Text == "1001" {
					return transient()
				}
				return nil
			}
		}
		bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
			now := time.Now()
			ids := m.add(1, "+391", now, now.Add(2*time.Second))
			after(3 * time.Minute)
			at := n.of(ids[1])
			if len(at) != 1 || at[0].Sub(now) < time.Minute || at[0].Sub(now) > time.Minute+time.Second {
				t.Errorf("the later one left at %v, want a minute after %v", at, now)
			}
		})
	})
	t.Run("over a change of owner", func(t *testing.T) {
		t.Parallel()
		setup := func(_ *dispatch.Config, m *memory, _ *network) {
			ids := m.add(1, "+391", time.Now(), time.Now())
			m.change(ids[0], func(r *row) { r.Attempt, r.IntentAt, r.Next = 1, time.Now(), time.Now().Add(6*time.Second) })
		}
		bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
			after(10 * time.Second)
			if got, want := n.order(), []puntuale.MessageID{1001, 1002}; !slices.Equal(got, want) {
				t.Errorf("order %v, want %v", got, want)
			}
		})
	})
}

// TestMemoryIsBounded uses a backlog that cannot leave. The dispatcher must read only a part of it into memory. As soon
// as the backlog can leave, all of it must leave.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const messages = 40_000
	open := make(chan struct{})
	var queued queueMeter
	setup := func(cfg *dispatch.Config, m *memory, n *network) {
		open = make(chan struct{}) // synctest needs a channel that is created inside the bubble
		cfg.Meter = &queued
		n.capabilities.Slots, n.capabilities.SendTimeout = 100, time.Hour
		n.send = func(context.Context, puntuale.Prepared) error { <-open; return nil }
		for i := range messages {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		for range 20 {
			after(time.Second)
			d.Wake(1, time.Now())
		}
		if limit := queued.most.Load(); limit < 1000 || limit > 20_000 {
			t.Errorf("%d messages in memory", limit)
		}
		close(open)
		after(30 * time.Second)
		if got := len(n.sightings()); got != messages {
			t.Errorf("%d left, want %d", got, messages)
		}
	})
}

// backlog adds 60,000 overdue messages. About 20,000 of them leave in a second. send is the network's answer to each
// message.
func backlog(send func(puntuale.Prepared) error) func(*dispatch.Config, *memory, *network) {
	return func(_ *dispatch.Config, m *memory, n *network) {
		n.capabilities.Slots = 1000
		m.commit = 50 * time.Millisecond
		n.send = func(_ context.Context, p puntuale.Prepared) error { return send(p) }
		for i := range backlogMessages {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now().Add(time.Duration(i-backlogMessages)*time.Millisecond))
		}
	}
}

const (
	backlogMessages = 60_000
	queueHolds      = 16_384 + 1000 // largest number of messages in memory and in flight
)

// TestBacklogIsReadOnce checks that each read of a backlog begins where the previous read ended.
func TestBacklogIsReadOnce(t *testing.T) {
	t.Parallel()
	bubble(t, backlog(func(puntuale.Prepared) error { return nil }), func(t *testing.T, _ *dispatch.Dispatcher, m *memory, n *network) {
		after(20 * time.Second)
		if left := len(n.sightings()); left != backlogMessages {
			t.Fatalf("%d of %d left", left, backlogMessages)
		}
		// When the rest is in memory, the session has no backlog any more. Therefore, the poll reads these messages a
		// second time.
		if limit := backlogMessages + queueHolds; m.seen > limit {
			t.Errorf("%d rows were read for %d messages, want %d at most", m.seen, backlogMessages, limit)
		}
	})
}

// TestBacklogMissesNothing adds a message that is due earlier than messages that were already read. With a wakeup, the
// scheduler finds this message immediately, and without a wakeup within five seconds. The scheduler also finds a
// message in retry.
func TestBacklogMissesNothing(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	setup := backlog(func(p puntuale.Prepared) error {
		if p.To == "+395000" && refused.CompareAndSwap(false, true) {
			return &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Quoted("x")}
		}
		return nil
	})
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(500 * time.Millisecond)
		lost := m.add(1, "+lost", began.Add(-time.Hour))[0]
		woken := m.add(1, "+woken", began.Add(-time.Minute))[0]
		d.Wake(1, began.Add(-time.Minute))
		after(40 * time.Second)
		at, count := map[puntuale.MessageID]time.Duration{}, map[string]int{}
		for _, s := range n.sightings() {
			at[s.Message] = s.at.Sub(began)
			count[s.To]++
		}
		if len(at) != backlogMessages+2 || count["+395000"] != 2 {
			t.Fatalf("%d of %d left; the refused one was tried %d times", len(at), backlogMessages+2, count["+395000"])
		}
		if at[lost] > 6*time.Second || at[woken] > 2*time.Second {
			t.Errorf("without a wakeup it left after %v, with one after %v", at[lost], at[woken])
		}
		// The wakeup, the retry and the poll at the end each read the messages in memory once more. Usually only a
		// quarter of the memory is in use, so the real number is lower than this limit.
		if limit := backlogMessages + 3*queueHolds; m.seen > limit {
			t.Errorf("%d rows were read for %d messages, want %d at most", m.seen, backlogMessages, limit)
		}
	})
}

type queueMeter struct {
	puntuale.NoMeter
	most atomic.Int64
}

func (q *queueMeter) Queue(messages, _ int) { q.most.Store(max(q.most.Load(), int64(messages))) }

// TestSlots checks that the number of messages in flight never exceeds the connector's slots.
func TestSlots(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.capabilities.Slots = 3
		n.send = func(context.Context, puntuale.Prepared) error { time.Sleep(100 * time.Millisecond); return nil }
		for i := range 30 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(5 * time.Second)
		all := n.sightings()
		if len(all) != 30 || n.highest[1] != 3 {
			t.Errorf("%d handed over, %d at once; want 30, 3", len(all), n.highest[1])
		}
		if took := all[29].at.Sub(began); took > 1000*time.Millisecond {
			t.Errorf("the last began after %v, want 0.9 s", took)
		}
	})
}

// TestPace checks that at most PerMinute messages leave in a minute, evenly spaced. The pace does not slow other
// sessions.
func TestPace(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		m.session(2, 1, 30)
		for i := range 90 {
			m.add(2, fmt.Sprintf("+39%d", i), time.Now())
		}
		m.add(1, "+40", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(4 * time.Minute)
		var paced []time.Time
		for _, s := range n.sightings() {
			if s.Session == 2 {
				paced = append(paced, s.at)
			} else if s.at.Sub(began) > time.Second {
				t.Errorf("the other session's message left after %v", s.at.Sub(began))
			}
		}
		if len(paced) != 90 {
			t.Fatalf("%d left in 4 minutes, want 90", len(paced))
		}
		for i := 30; i < len(paced); i++ {
			if d := paced[i].Sub(paced[i-30]); d < time.Minute || d > time.Minute+2*time.Second {
				t.Errorf("thirty-one messages within %v", d)
			}
		}
	})
}

// aDay reduces the number of polls, so that a test of a whole day is quick. The default would be 86,400 polls in a day.
func aDay(cfg *dispatch.Config) { cfg.Poll, cfg.Lease = 20*time.Second, 2*time.Minute }

// TestPaceOfADay checks that at most PerDay messages leave in any 24 hours. This number includes messages that left
// before this node got the session. The intervals between messages differ, and are never shorter than PerMinute allows.
func TestPaceOfADay(t *testing.T) {
	t.Parallel()
	setup := func(cfg *dispatch.Config, m *memory, _ *network) {
		aDay(cfg)
		m.sessions = append(m.sessions, puntuale.Session{
			ID: 2, Client: 1, Type: puntuale.Socket, Sandbox: true, Pace: puntuale.Pace{PerMinute: 6, PerDay: 10, Jitter: 5},
		})
		cfg.Departed = func(context.Context, puntuale.ClientID, puntuale.SessionID, time.Time, int) ([]time.Time, error) {
			return []time.Time{time.Now().Add(-time.Hour), time.Now().Add(-23 * time.Hour), time.Now().Add(-23 * time.Hour)}, nil
		}
		for i := range 30 {
			m.add(2, fmt.Sprintf("+39%d", i), time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(23*time.Hour + 50*time.Minute)
		var left []time.Time
		for _, s := range n.sightings() {
			left = append(left, s.at)
		}
		in := func(from, to time.Duration) (count int) {
			for _, at := range left {
				if d := at.Sub(began); d >= from && d < to {
					count++
				}
			}
			return count
		}
		if a, b, c := in(0, 30*time.Minute), in(30*time.Minute, 22*time.Hour), in(22*time.Hour, 24*time.Hour); a != 7 || b != 2 || c != 1 {
			t.Errorf("%d left at first, %d and %d as the day went on; want 7, 2, 1", a, b, c)
		}
		gaps := map[time.Duration]bool{}
		for i := 1; i < 7; i++ {
			gap := left[i].Sub(left[i-1])
			gaps[gap] = true
			if gap < 10*time.Second || gap > 15*time.Second+100*time.Millisecond {
				t.Errorf("%v between two", gap)
			}
		}
		if len(gaps) < 4 {
			t.Errorf("they leave like clockwork: %v", gaps)
		}
	})
}

// TestSlowPrepare checks that a slow preparation delays only its own recipient. It does not delay texts to other
// recipients, or other sessions.
func TestSlowPrepare(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		m.session(2, 2, 0)
		n.prepare = func(ctx context.Context, e puntuale.Envelope) error {
			if e.To[:3] == "+40" {
				time.Sleep(20 * time.Second)
			}
			return nil
		}
		for i := range 20 {
			m.add(1, fmt.Sprintf("+40%d", i), time.Now())
			m.add(1, fmt.Sprintf("+39%d", i), time.Now(), time.Now())
			m.add(2, fmt.Sprintf("+39%d", i), time.Now())
		}
		m.add(1, "+400", time.Now().Add(time.Second))
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(time.Minute)
		if len(n.sightings()) != 81 {
			t.Fatalf("%d handed over, want 81", len(n.sightings()))
		}
		for _, s := range n.sightings() {
			slow := s.To[:3] == "+40"
			if took := s.at.Sub(began); slow != (took >= 20*time.Second) {
				t.Errorf("message to %s left after %v", s.To, took)
			}
		}
	})
}

// TestPrepareFails checks that a Final error from Prepare closes the message without an attempt. After a Transient
// error, the message is prepared again, and its order does not change.
func TestPrepareFails(t *testing.T) {
	t.Parallel()
	tries := map[string]int{}
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.prepare = func(_ context.Context, e puntuale.Envelope) error {
			tries[e.To]++ // each recipient has one message
			switch e.To {
			case "+391":
				return &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Quoted("Numero inesistente"), Detail: puntuale.Quoted("404")}
			case "+392":
				if tries[e.To] < 3 {
					return errors.New("timeout")
				}
			case "+393":
				panic("poison")
			}
			return nil
		}
		n.capabilities.Slots = 1000
		for _, phone := range []string{"+391", "+392", "+393"} {
			m.add(1, phone, time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(2 * time.Minute)
		if r := m.get(1001); r.state != puntuale.Failed || r.reason.String() != "Numero inesistente" || r.Attempt != 0 {
			t.Errorf("refused: %v %q, %d attempts", r.state, r.reason, r.Attempt)
		}
		if r := m.get(1002); r.state != puntuale.Completed || r.Attempt != 1 || tries["+392"] != 3 {
			t.Errorf("transient: %v, %d attempts, prepared %d times", r.state, r.Attempt, tries["+392"])
		}
		if r := m.get(1003); r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonUnrecoverable || tries["+393"] != 3 {
			t.Errorf("poison: %v %q, prepared %d times", r.state, r.reason, tries["+393"])
		}
	})
}

// TestWindow uses messages that are due outside their windows. A message must wait until its window opens. If the window
// opens too late, the message expires on time.
func TestWindow(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		// The fake time of a bubble begins on Saturday, 1 January 2000, at 01:00 in Rome.
		w := &puntuale.Window{From: "09:00", To: "18:00"}
		now := time.Now()
		in := m.addWith(1, "+391", w, 24*time.Hour, now)[0]
		late := m.addWith(1, "+392", w, time.Hour, now)[0]
		after(9 * time.Hour)
		nine := time.Date(2000, 1, 1, 8, 0, 0, 0, time.UTC)
		if at := n.of(in); len(at) != 1 || at[0].Before(nine) || at[0].After(nine.Add(time.Millisecond)) {
			t.Errorf("left at %v, want %v", at, nine)
		}
		if r := m.get(late); r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonExpired || r.done.Sub(now) > time.Hour+2*time.Second {
			t.Errorf("the one that could not wait: %v %q at %v", r.state, r.reason, r.done)
		}
	})
}

// TestExpiry checks that an expired message records the reason why it did not leave.
func TestExpiry(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		m.session(2, 2, 0)
		m.session(3, 3, 0)
		n.online = func(s puntuale.SessionID) bool { return s != 2 }
		m.setPermission(3, puntuale.SendPermission{Credits: new(int64(0))})
		n.prepare = func(context.Context, puntuale.Envelope) error { return transient() }
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		for s := range puntuale.SessionID(3) {
			m.addWith(s+1, "+391", nil, 10*time.Minute, time.Now())
		}
		// A message that expires soon is closed on time, even behind a message with a later deadline.
		short := m.addWith(2, "+392", nil, 3*time.Second, time.Now())[0]
		d.Wake(2, time.Now())
		began := time.Now()
		after(11 * time.Minute)
		for i, want := range []puntuale.ReasonCode{puntuale.ReasonExpired, puntuale.ReasonNotLinked, puntuale.ReasonNoCredit} {
			r := m.get(puntuale.MessageID(1001 + i))
			if r.state != puntuale.Failed || r.reason.Code != want {
				t.Errorf("session %d: %v %q, want FAILED %q", i+1, r.state, r.reason, want)
			}
			if at := r.done.Sub(began); at < 10*time.Minute || at > 10*time.Minute+2*time.Second {
				t.Errorf("session %d: closed after %v", i+1, at)
			}
		}
		if at := m.get(short).done.Sub(began); at < 3*time.Second || at > 5*time.Second {
			t.Errorf("the short one closed after %v", at)
		}
		if len(n.sightings()) != 0 {
			t.Errorf("%d were handed over", len(n.sightings()))
		}
	})
}

// TestExpiryBehindBacklog uses a session that cannot send, with more messages than one read returns. A message that
// expires behind these rows must also be closed soon.
func TestExpiryBehindBacklog(t *testing.T) {
	t.Parallel()
	var short []puntuale.MessageID
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		for s := range puntuale.SessionID(199) { // with more sessions, each read returns fewer rows of a session
			m.session(s+2, puntuale.ClientID(s+2), 0)
		}
		n.online = func(s puntuale.SessionID) bool { return s == 2 }
		m.setPermission(2, puntuale.SendPermission{Suspended: true})
		for s := range puntuale.SessionID(2) {
			m.add(s+1, "+39", slices.Repeat([]time.Time{time.Now()}, 500)...)
			short = append(short, m.addWith(s+1, "+40", nil, 95*time.Second, time.Now().Add(time.Second))...)
			short = append(short, m.addWith(s+1, "+40", nil, 5*time.Second, time.Now().Add(time.Second))...)
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(3 * time.Minute)
		for i, id := range short {
			r := m.get(id)
			if late := r.done.Sub(r.ValidUntil); r.state != puntuale.Failed || late < 0 || late > 15*time.Second {
				t.Errorf("%d: %v %q, %v late", i, r.state, r.reason, late)
			}
		}
	})
}

// TestExpiryInQueue lets messages expire while they wait. Each message must be closed on time, at any position in the
// queue.
func TestExpiryInQueue(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		m.session(2, 1, 1)
		for i := range 20 {
			m.add(2, fmt.Sprintf("+39%d", i), time.Now())
		}
		m.addWith(2, "+40", nil, time.Minute, time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(10 * time.Minute)
		r := m.get(1021)
		if took := r.done.Sub(began); r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonExpired || took > time.Minute+2*time.Second {
			t.Errorf("%v %q after %v", r.state, r.reason, took)
		}
	})
}

// TestStoppedClient checks that nothing is written while a client may not send. When the client may send again, its
// messages leave within the poll's interval.
func TestStoppedClient(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		m.session(2, 2, 0)
		m.setPermission(1, puntuale.SendPermission{Suspended: true})
		for i := range 50 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(10 * time.Minute)
		m.mu.Lock()
		claims := len(m.claims)
		m.mu.Unlock()
		if claims > 2 {
			t.Errorf("%d claims were tried for a client that may not send", claims)
		}
		other := m.add(2, "+40", time.Now())[0]
		d.Wake(2, time.Now())
		synctest.Wait()
		if len(n.of(other)) != 1 {
			t.Error("another client's message had to wait")
		}
		m.setPermission(1, puntuale.SendPermission{})
		after(1100 * time.Millisecond)
		if got := len(n.sightings()); got != 51 {
			t.Errorf("%d left after the renewal, want 51", got)
		}
	})
}

// TestOffline checks that messages of an offline session wait, and leave when the session is online again.
func TestOffline(t *testing.T) {
	t.Parallel()
	back := time.Time{}
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		back = time.Now().Add(time.Minute)
		n.online = func(puntuale.SessionID) bool { return !time.Now().Before(back) }
		m.add(1, "+39", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(2 * time.Minute)
		if at := n.of(1001); len(at) != 1 || at[0].Before(back) || at[0].After(back.Add(time.Second)) {
			t.Errorf("left at %v, want within a second of %v", at, back)
		}
	})
}

// TestQuiet checks that a session sends nothing for a limited time after it was throttled or went down. No attempt
// counts as failed.
func TestQuiet(t *testing.T) {
	t.Parallel()
	var deadline time.Time
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		deadline = time.Now().Add(30 * time.Second)
		n.capabilities.Slots = 1
		n.send = func(context.Context, puntuale.Prepared) error {
			if time.Now().Before(deadline) {
				return &puntuale.SendError{Kind: puntuale.Throttled, Reason: puntuale.Quoted("Troppi messaggi"), After: 10 * time.Second}
			}
			return nil
		}
		for i := range 20 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now())
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(2 * time.Minute)
		early := 0
		for _, s := range n.sightings() {
			if s.at.Before(deadline) {
				early++
			}
		}
		if early > 4 {
			t.Errorf("%d attempts while the network wanted quiet, want at most 4", early)
		}
		if all := len(n.sightings()); all != 20+early {
			t.Errorf("%d attempts in all, want %d", all, 20+early)
		}
	})
}
