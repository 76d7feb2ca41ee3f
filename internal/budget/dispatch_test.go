package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
)

// noop is a connector that accepts every message at once.
type noop struct{}

func (noop) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "noop", Slots: 1000, SendTimeout: time.Minute, Recovery: puntuale.RecoverSameID}
}
func (noop) Online(puntuale.SessionID) bool { return true }
func (noop) Prepare(_ context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	return puntuale.Prepared{Envelope: e}, nil
}

func (noop) Send(context.Context, puntuale.Prepared) (puntuale.Acceptance, error) {
	return puntuale.Acceptance{}, nil
}

// tally is a queue that closes its channel all when it has recorded the wanted number of outcomes.
type tally struct {
	puntuale.Queue
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func (t *tally) Record(ctx context.Context, now time.Time, r []puntuale.Result) ([]bool, error) {
	ok, err := t.Queue.Record(ctx, now, r)
	if err != nil {
		return ok, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left -= len(r); t.left <= 0 && t.left+len(r) > 0 {
		close(t.all)
	}
	return ok, nil
}

// dispatchAll starts a dispatcher, waits until n messages have their outcomes, and stops it. The start and the stop
// are measured too, but cost little compared with hundreds of messages.
func dispatchAll(ctx context.Context, q puntuale.Queue, fleet puntuale.Fleet, n int) error {
	t := &tally{Queue: q, left: n, all: make(chan struct{})}
	d := dispatch.New(dispatch.Config{
		Queue: t, Fleet: fleet, Clock: clock.System(), Meter: puntuale.NoMeter{}, Logger: quiet(),
		Connector: func(puntuale.Session) puntuale.Connector { return noop{} },
	})
	if err := d.Start(ctx); err != nil {
		return err
	}
	var late error
	select {
	case <-t.all:
	case <-time.After(time.Minute):
		late = fmt.Errorf("%d of %d messages have no outcome", t.left, n)
	}
	return errors.Join(late, d.Stop(ctx))
}

// dispatchInMemory measures the dispatcher alone, because its queue in memory costs almost nothing.
func dispatchInMemory(t testing.TB, _ *world, n int) func(int) error {
	t.Helper()
	q := &backlog{sent: map[puntuale.MessageID]bool{}, last: puntuale.MessageID(n * batch), now: now()}
	return func(i int) error {
		if i > 0 {
			return nil // the first call sent all messages, because a dispatcher sends all due messages
		}
		return dispatchAll(t.Context(), q, q, n*batch)
	}
}

// backlog is a queue in memory. All its messages are due, and each has a different recipient. A claimed message leaves
// the queue.
type backlog struct {
	mu    sync.Mutex
	first puntuale.MessageID // all messages before this one were claimed
	last  puntuale.MessageID
	sent  map[puntuale.MessageID]bool
	now   time.Time
}

func (b *backlog) Due(_ context.Context, _ []puntuale.QueueCursor, _ time.Time, limit int) (due []puntuale.DueMessage, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.sent[b.first+1] {
		b.first++
		delete(b.sent, b.first)
	}
	for id := b.first + 1; id <= b.last && len(due) < limit; id++ {
		if !b.sent[id] {
			due = append(due, puntuale.DueMessage{
				Client: 1, ID: id, Session: 1, Run: puntuale.RunID(id), Phone: id.String(), Due: b.now, Next: b.now, ValidUntil: b.now.Add(time.Hour),
			})
		}
	}
	return due, nil
}

func (b *backlog) Claim(_ context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	granted := make([]puntuale.ClaimAnswer, len(c.Messages))
	for i, m := range c.Messages {
		if m.ID > b.first && !b.sent[m.ID] {
			b.sent[m.ID], granted[i] = true, puntuale.ClaimGranted
		}
	}
	return granted, nil
}

func (b *backlog) Record(_ context.Context, _ time.Time, r []puntuale.Result) ([]bool, error) {
	return make([]bool, len(r)), nil
}

func (b *backlog) Contents(_ context.Context, steps []puntuale.StepRef) (map[puntuale.StepRef]puntuale.StepContent, error) {
	found := make(map[puntuale.StepRef]puntuale.StepContent, len(steps))
	for _, r := range steps {
		found[r] = puntuale.StepContent{Zone: "UTC", Content: puntuale.Content{Text: "x"}}
	}
	return found, nil
}

func (b *backlog) Expiring(context.Context, puntuale.SessionID, time.Time, int) ([]puntuale.DueMessage, error) {
	return nil, nil
}

func (b *backlog) Retrying(context.Context, []puntuale.SessionID, time.Time, time.Time, int) ([]puntuale.DueMessage, []puntuale.SessionID, error) {
	return nil, nil, nil
}

func (b *backlog) SendPermissions(context.Context, []puntuale.ClientID) (map[puntuale.ClientID]puntuale.SendPermission, error) {
	return nil, nil
}

func (b *backlog) Settle(context.Context, puntuale.NodeID, time.Time, []puntuale.Settlement) error {
	return nil
}
func (b *backlog) Join(context.Context, time.Duration) (puntuale.NodeID, error) { return 1, nil }
func (b *backlog) Beat(context.Context, puntuale.NodeID, time.Duration) error   { return nil }
func (b *backlog) Reap(context.Context) (int, error)                            { return 0, nil }
func (b *backlog) Leave(context.Context, puntuale.NodeID) error                 { return nil }
func (b *backlog) Roster(context.Context, puntuale.NodeID) ([]puntuale.NodeID, []puntuale.Session, error) {
	return []puntuale.NodeID{1}, []puntuale.Session{{ID: 1, Client: 1, Owner: 1}}, nil
}

func (b *backlog) Assign(_ context.Context, _, _ puntuale.NodeID, ids []puntuale.SessionID) ([]puntuale.SessionID, error) {
	return ids, nil
}
