package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"puntuale"
)

const maxSettle = 1000 // largest number of settlements in one call

// settler closes and postpones messages that are not in flight. If a write fails, it removes the messages from memory.
// Their rows have not changed, so the poll finds the messages again.
type settler struct {
	s    *scheduler
	wake chan struct{}

	mu      sync.Mutex
	pending []pendingSettlement
}

type pendingSettlement struct {
	m          *queuedMessage
	settlement puntuale.Settlement
	verdict    string
	offline    bool
	node       puntuale.NodeID
}

func newSettler(s *scheduler) *settler {
	return &settler{s: s, wake: make(chan struct{}, 1)}
}

func (t *settler) push(x pendingSettlement) {
	t.mu.Lock()
	t.pending = append(t.pending, x)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *settler) run(ctx context.Context) {
	for {
		select {
		case <-t.wake:
		case <-ctx.Done():
			return
		}
		for {
			t.mu.Lock()
			batch := t.pending[:min(len(t.pending), maxSettle)]
			t.pending = t.pending[len(batch):]
			t.mu.Unlock()
			if len(batch) == 0 {
				break
			}
			err := t.write(ctx, batch)
			t.s.mailbox.post(func() { t.s.settled(batch, err) })
		}
	}
}

func (t *settler) write(ctx context.Context, batch []pendingSettlement) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	now := t.s.cfg.Clock.Now()
	if err := t.explain(ctx, batch, now); err != nil {
		return err
	}
	settlements := make([]puntuale.Settlement, len(batch))
	for i := range batch {
		settlements[i] = batch[i].settlement
	}
	return t.s.cfg.Queue.Settle(ctx, batch[0].node, now, settlements)
}

// explain finds out why expired messages did not leave. It checks the client first, and then the session. If neither is
// the cause, the reason is that the time was too short.
func (t *settler) explain(ctx context.Context, batch []pendingSettlement, now time.Time) error {
	requested := map[puntuale.ClientID]bool{}
	var clients []puntuale.ClientID
	for _, x := range batch {
		if x.verdict == "expired" && !requested[x.m.row.Client] {
			requested[x.m.row.Client] = true
			clients = append(clients, x.m.row.Client)
		}
	}
	if len(clients) == 0 {
		return nil
	}
	found, err := t.s.cfg.Queue.SendPermissions(ctx, clients)
	if err != nil {
		return err
	}
	for i := range batch {
		x := &batch[i]
		if x.verdict != "expired" {
			continue
		}
		switch hold := found[x.m.row.Client].WaitReason(now); {
		case hold != "":
			x.settlement.Reason = puntuale.Because(hold)
		case x.m.queue.session.ByDevice() && x.m.queue.session.LinkOf() == puntuale.LinkOnline:
			x.settlement.Reason = puntuale.Because(puntuale.ReasonNotTaken)
		case x.offline:
			x.settlement.Reason = puntuale.Because(puntuale.ReasonNotLinked)
		default:
			x.settlement.Reason = puntuale.Because(puntuale.ReasonExpired)
		}
	}
	return nil
}

// settled removes from memory the messages that were closed or postponed.
func (s *scheduler) settled(batch []pendingSettlement, err error) {
	if err != nil && s.life.ctx.Err() == nil {
		s.cfg.Logger.Warn("closing or postponing messages failed", "error", err)
	}
	if errors.Is(err, puntuale.ErrFenced) {
		s.fenced(batch[0].node)
	}
	for _, x := range batch {
		if err == nil {
			s.cfg.Meter.Outcome(x.m.queue.capabilities.Name, x.verdict, 1)
		}
		if err == nil && x.settlement.State == puntuale.Failed {
			if r := x.m.queue.recipients[recipientKeyOf(&x.m.row)]; r != nil {
				r.removeBarrier(x.m.row.ID)
			}
		}
		s.forget(x.m)
	}
}
