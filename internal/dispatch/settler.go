package dispatch

import (
	"context"
	"errors"
	"time"

	"puntuale"
	"puntuale/internal/batch"
)

const maxSettle = 1000 // largest number of settlements in one call

// settler closes and postpones messages that are not in flight. If a write fails, it removes the messages from memory.
// Their rows have not changed, so the poll finds the messages again.
type settler struct {
	s       *scheduler
	pending *batch.Queue[pendingSettlement]
}

type pendingSettlement struct {
	m          *queuedMessage
	settlement puntuale.Settlement
	verdict    string
	offline    bool
	node       puntuale.NodeID
}

func newSettler(s *scheduler) *settler {
	return &settler{s, batch.New[pendingSettlement]()}
}

func (t *settler) push(x pendingSettlement) { t.pending.Add(x) }

func (t *settler) run(ctx context.Context) {
	for all := range t.pending.Batches(ctx, maxSettle) {
		err := t.write(ctx, all)
		t.s.mailbox.post(func() { t.s.settled(all, err) })
	}
}

func (t *settler) write(ctx context.Context, all []pendingSettlement) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	now := t.s.cfg.Clock.Now()
	if err := t.explain(ctx, all, now); err != nil {
		return err
	}
	settlements := make([]puntuale.Settlement, len(all))
	for i := range all {
		settlements[i] = all[i].settlement
	}
	return t.s.cfg.Queue.Settle(ctx, all[0].node, now, settlements)
}

// explain finds out why expired messages did not leave. It checks the client first, and then the session. If neither is
// the cause, the reason is that the time was too short.
func (t *settler) explain(ctx context.Context, all []pendingSettlement, now time.Time) error {
	requested := map[puntuale.ClientID]bool{}
	var clients []puntuale.ClientID
	for _, x := range all {
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
	for i := range all {
		x := &all[i]
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
func (s *scheduler) settled(all []pendingSettlement, err error) {
	if err != nil && s.life.ctx.Err() == nil {
		s.cfg.Logger.Warn("closing or postponing messages failed", "error", err)
	}
	if errors.Is(err, puntuale.ErrFenced) {
		s.fenced(all[0].node)
	}
	for _, x := range all {
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
