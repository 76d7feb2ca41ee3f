package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// refusalWait is the wait that the network requests in the table below. It is longer than the dispatcher's own waits.
const refusalWait = 20 * time.Second

// errPanics makes the network of the test panic instead of returning this error.
var errPanics = errors.New("the connector panics")

// refusals contains all ways in which a connector can fail once, and the effects of each. The effects are the same for
// Prepare and Send.
var refusals = map[string]struct {
	err         error
	failed      bool          // true: the message becomes FAILED
	wait        time.Duration // the message leaves at least this much later
	sessionWait time.Duration // the session's messages to other recipients leave at least this much later
	behind      bool          // true: the recipient's next message leaves after this message
}{
	"final":         {err: refusal(puntuale.Final), failed: true},
	"transient":     {err: refusal(puntuale.Transient), wait: 5 * time.Second, behind: true},
	"session down":  {err: refusal(puntuale.SessionDown), wait: 5 * time.Second, sessionWait: 5 * time.Second, behind: true},
	"throttled":     {err: refusal(puntuale.Throttled), wait: refusalWait, sessionWait: refusalWait, behind: true},
	"deferred":      {err: refusal(puntuale.Deferred), wait: refusalWait, behind: true},
	"no evidence":   {err: errors.New("the line broke"), wait: 3 * time.Second, behind: true},
	"panic":         {err: errPanics, wait: 3 * time.Second, behind: true},
	"wrapped":       {err: fmt.Errorf("ask the network: %w", refusal(puntuale.Throttled)), wait: refusalWait, sessionWait: refusalWait, behind: true},
	"final wrapped": {err: errors.Join(errors.New("upload"), refusal(puntuale.Final)), failed: true},
}

func refusal(kind puntuale.SendErrorKind) error {
	return &puntuale.SendError{Kind: kind, Reason: puntuale.Quoted("Per ora no"), Detail: puntuale.Quoted("test"), After: refusalWait}
}

// TestRefusals checks that a refusal has the same effect in Prepare and in Send. It checks the message, its session,
// its recipient's order and the client's credit. There is one difference. If Send returns an error without proof, the
// attempt may have arrived. In this case, the message's credit stays reserved, and the recipient's next message does
// not wait.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, want := range refusals {
		for _, phase := range []string{"prepare", "send"} {
			t.Run(name+"/"+phase, func(t *testing.T) {
				t.Parallel()
				evidence := puntuale.AsSendError(want.err)
				uncertain := evidence == nil && phase == "send"
				var begin time.Time
				var first, other, second puntuale.MessageID
				setup := func(_ *dispatch.Config, m *memory, n *network) {
					begin = time.Now()
					first = m.add(1, "+391", begin)[0]
					other = m.add(1, "+392", begin.Add(100*time.Millisecond))[0]
					second = m.add(1, "+391", begin.Add(200*time.Millisecond))[0]
					refuseOnce(n, phase, first, want.err)
				}
				bubble(t, setup, func(t *testing.T, _ *dispatch.Dispatcher, m *memory, n *network) {
					after(2 * time.Second)
					if kept := m.reserved(first); kept != uncertain {
						t.Errorf("after the refusal its credit is kept: %v, want %v", kept, uncertain)
					}
					if said := m.get(first).reason; evidence != nil && !said.Equal(evidence.Reason) || evidence == nil && !said.IsZero() {
						t.Errorf("after the refusal its reason is %v", said)
					}
					after(time.Minute)
					if state := m.get(first).state; (state == puntuale.Failed) != want.failed || state == puntuale.Pending {
						t.Errorf("the message is %v", state)
					}
					leftAfter(t, n, other, begin.Add(100*time.Millisecond), want.sessionWait)
					moment := begin.Add(200 * time.Millisecond)
					if want.failed || uncertain {
						leftAfter(t, n, second, moment, 0)
					}
					if want.failed {
						return
					}
					leftAfter(t, n, first, begin, want.wait)
					if at, behind := n.of(first), n.of(second); want.behind && !uncertain && (len(behind) != 1 || behind[0].Before(at[len(at)-1])) {
						t.Errorf("the recipient's next left at %v, before %v", behind, at)
					}
				})
			})
		}
	}
}

// TestAllKindsAreRefused checks that the table contains every kind of send error.
func TestAllKindsAreRefused(t *testing.T) {
	t.Parallel()
	listed := map[puntuale.SendErrorKind]bool{}
	for _, r := range refusals {
		if e := puntuale.AsSendError(r.err); e != nil {
			listed[e.Kind] = true
		}
	}
	for kind := puntuale.Final; kind <= puntuale.Deferred; kind++ {
		if !listed[kind] {
			t.Errorf("kind %d is not in the table", kind)
		}
	}
}

// refusedRepeats contains the effects of an error from a repeat. A refusal does not prove that the earlier attempt
// failed, so the message stays uncertain. Only Final from Send concerns both attempts. After an error of Prepare, the
// next repeat is not urgent. After an error of Send, the next repeat comes after the usual interval.
var refusedRepeats = map[string]struct {
	err           error
	prepare, send time.Duration // wait until the next repeat; 0: there is none
	sessionWait   time.Duration
	failed        bool // true: Final from Send makes the message FAILED immediately
}{
	"final":        {err: refusal(puntuale.Final), failed: true},
	"transient":    {err: refusal(puntuale.Transient), prepare: 40 * time.Second, send: 12 * time.Second},
	"session down": {err: refusal(puntuale.SessionDown), prepare: 5 * time.Second, send: 12 * time.Second, sessionWait: 5 * time.Second},
	"throttled":    {err: refusal(puntuale.Throttled), prepare: refusalWait, send: refusalWait, sessionWait: refusalWait},
	"deferred":     {err: refusal(puntuale.Deferred), prepare: refusalWait, send: 12 * time.Second},
	"no evidence":  {err: errors.New("the line broke"), prepare: 40 * time.Second, send: 12 * time.Second},
	"panic":        {err: errPanics, send: 12 * time.Second},
}

// TestRefusedRepeats refuses the repeat of a message, in Prepare or in Send. The message must stay uncertain, and its
// credit must stay reserved. Other messages wait only if the refusal concerns the session. A message that is not
// repeated again becomes FAILED at its deadline.
func TestRefusedRepeats(t *testing.T) {
	t.Parallel()
	for name, want := range refusedRepeats {
		for _, phase := range []string{"prepare", "send"} {
			t.Run(name+"/"+phase, func(t *testing.T) {
				t.Parallel()
				var begin time.Time
				var first, other, second puntuale.MessageID
				setup := func(_ *dispatch.Config, m *memory, n *network) {
					begin = time.Now()
					first = m.add(1, "+391", begin)[0]
					other = m.add(1, "+392", begin.Add(3500*time.Millisecond))[0]
					second = m.add(1, "+391", begin.Add(3500*time.Millisecond))[0]
					refuseOnce(n, phase, first, want.err)
					loseFirst(n, first)
				}
				bubble(t, setup, func(t *testing.T, _ *dispatch.Dispatcher, m *memory, n *network) {
					failed, wait := want.failed && phase == "send", want.prepare
					if phase == "send" {
						wait = want.send
					}
					after(4 * time.Second) // the first repeat comes after three seconds
					r := m.get(first)
					if failed != (r.state == puntuale.Failed) || failed == r.credit {
						t.Errorf("after the refusal it is %v, and its credit is kept: %v", r.state, r.credit)
					}
					if !failed && r.Intent == 0 {
						t.Error("after the refusal it is open, as if nothing had been sent")
					}
					after(time.Minute)
					for _, id := range []puntuale.MessageID{other, second} {
						leftAfter(t, n, id, begin.Add(3500*time.Millisecond), max(0, want.sessionWait-500*time.Millisecond))
					}
					switch r = m.get(first); {
					case failed:
					case wait == 0:
						if r.state != puntuale.Pending || r.Intent == 0 {
							t.Errorf("without a repeat it is %v", r.state)
						}
						after(24 * time.Hour)
						if r = m.get(first); r.state != puntuale.Failed {
							t.Errorf("after its deadline it is %v", r.state)
						}
					case r.state != puntuale.Completed:
						t.Errorf("it is %v", r.state)
					default:
						leftAfter(t, n, first, begin.Add(3*time.Second), wait)
					}
				})
			})
		}
	}
}

// loseFirst makes the network lose the answer to the first attempt of a message.
func loseFirst(n *network, id puntuale.MessageID) {
	prepare, send := n.prepare, n.send
	n.prepare = func(ctx context.Context, e puntuale.Envelope) error {
		if prepare == nil || e.Message == id && !e.Repeat {
			return nil
		}
		return prepare(ctx, e)
	}
	n.send = func(ctx context.Context, p puntuale.Prepared) error {
		switch {
		case p.Message == id && !p.Repeat:
			return errors.New("the answer was lost")
		case send == nil:
			return nil
		}
		return send(ctx, p)
	}
}

// refuseOnce makes the network return err at the first Prepare, or at the first Send, of a message.
func refuseOnce(n *network, phase string, id puntuale.MessageID, err error) {
	done := false // needs no lock, because only one goroutine at a time prepares or sends a message
	once := func(e puntuale.Envelope) error {
		if e.Message != id || done {
			return nil
		}
		done = true
		if errors.Is(err, errPanics) {
			panic(err)
		}
		return err
	}
	if phase == "prepare" {
		n.prepare = func(_ context.Context, e puntuale.Envelope) error { return once(e) }
		return
	}
	n.send = func(_ context.Context, p puntuale.Prepared) error { return once(p.Envelope) }
}

// leftAfter checks when the last attempt of a message was made. If wait is 0, the attempt must be at since. If wait is
// not 0, the attempt must be at least wait after since, and at most one and a half times wait after since.
func leftAfter(t *testing.T, n *network, id puntuale.MessageID, since time.Time, wait time.Duration) {
	t.Helper()
	at := n.of(id)
	if len(at) == 0 {
		t.Errorf("message %d never left", id)
		return
	}
	// If the whole session must wait, the wait begins at the refusal. The refusal is a little before since.
	took := at[len(at)-1].Sub(since)
	if took < wait-300*time.Millisecond || took > wait+wait/2+time.Second {
		t.Errorf("message %d left %v late, want %v", id, took, wait)
	}
}

// TestThrottledPreparationsStop checks that the connector prepares nothing more while a session is throttled. After
// that, all messages leave in order. A message that is not due yet does not leave early.
func TestThrottledPreparationsStop(t *testing.T) {
	t.Parallel()
	var begin time.Time
	var ids []puntuale.MessageID
	var asked []time.Time
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		begin = time.Now()
		for i := range 20 {
			ids = append(ids, m.add(1, "+391", begin.Add(time.Duration(i)*time.Second))...)
		}
		n.prepare = func(_ context.Context, e puntuale.Envelope) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			asked = append(asked, time.Now())
			if time.Since(begin) < 10*time.Second {
				return &puntuale.SendError{Kind: puntuale.Throttled, Reason: puntuale.Quoted("Per ora no"), After: time.Until(begin.Add(10 * time.Second))}
			}
			return nil
		}
	}
	bubble(t, setup, func(t *testing.T, _ *dispatch.Dispatcher, m *memory, n *network) {
		after(time.Minute)
		m.mu.Lock()
		during := 0
		for _, at := range asked {
			if at.Before(begin.Add(10 * time.Second)) {
				during++
			}
		}
		m.mu.Unlock()
		if during == 0 || during > 3 { // only preparations that began before the first refusal are allowed
			t.Errorf("asked to prepare %d times while throttled", during)
		}
		all := n.sightings()
		if len(all) != len(ids) {
			t.Fatalf("%d of %d left", len(all), len(ids))
		}
		for i, s := range all {
			if s.Message != ids[i] {
				t.Fatalf("order %v, want %v", n.order(), ids)
			}
			if due := begin.Add(time.Duration(i) * time.Second); s.at.Before(due) {
				t.Errorf("message %d left at %v, before %v", s.Message, s.at, due)
			}
		}
	})
}

// TestPutOffIsNotEarly makes Prepare refuse a message before its due time. The message must not leave before its due
// time.
func TestPutOffIsNotEarly(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]puntuale.SendErrorKind{"throttled": puntuale.Throttled, "deferred": puntuale.Deferred} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var id puntuale.MessageID
			var due time.Time
			setup := func(_ *dispatch.Config, m *memory, n *network) {
				due = time.Now().Add(1900 * time.Millisecond)
				id = m.add(1, "+391", due)[0]
				refuseOnce(n, "prepare", id, &puntuale.SendError{Kind: kind, Reason: puntuale.Quoted("Per ora no"), After: 100 * time.Millisecond})
			}
			bubble(t, setup, func(t *testing.T, _ *dispatch.Dispatcher, _ *memory, n *network) {
				after(10 * time.Second)
				if at := n.of(id); len(at) != 1 || at[0].Before(due) {
					t.Errorf("left at %v, due at %v", at, due)
				}
			})
		})
	}
}
