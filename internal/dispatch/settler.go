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
	marketing  time.Time // with overBudget: until when the client's marketing waits; zero: it does not wait any more
	node       puntuale.NodeID
}

func newSettler(s *scheduler) *settler {
	return &settler{s, batch.New[pendingSettlement]()}
}

func (t *settler) push(x pendingSettlement) { t.pending.Add(x) }

func (t *settler) run(ctx context.Context) {
	for all := range t.pending.Batches(ctx, maxSettle) {
		_, err := guarded(t.s, func() (struct{}, error) { return struct{}{}, t.write(ctx, all) })
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

// waitsForBudget is the verdict about messages that wait until the client has a budget again.
const waitsForBudget = "waits_for_budget"

// explain finds out until when marketing waits for a budget, and why expired messages did not leave. It checks the client first, and then the session. If neither is
// the cause, the reason is that the time was too short.
func (t *settler) explain(ctx context.Context, all []pendingSettlement, now time.Time) error {
	requested := map[puntuale.ClientID]bool{}
	var clients []puntuale.ClientID
	for _, x := range all {
		if (x.verdict == "expired" || x.verdict == waitsForBudget) && !requested[x.m.row.Client] {
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
		marketingWaits := x.m.row.Purpose == puntuale.PurposeMarketing && found[x.m.row.Client].MarketingWaits(now)
		if x.verdict == waitsForBudget && marketingWaits { // else it may leave now; see settled
			x.marketing = found[x.m.row.Client].MarketingFrom
			x.settlement.Next = found[x.m.row.Client].MarketingNext(x.m.row)
			x.settlement.Detail = puntuale.Because(puntuale.ReasonBudget)
		}
		if x.verdict != "expired" {
			continue
		}
		switch hold := found[x.m.row.Client].WaitReason(now); {
		case hold != "":
			x.settlement.Reason = puntuale.Because(hold)
		case marketingWaits:
			x.settlement.Reason = puntuale.Because(puntuale.ReasonBudget)
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
		leaves := err == nil && x.verdict == waitsForBudget && x.marketing.IsZero() // the budget was raised meanwhile
		if err == nil && x.verdict == waitsForBudget {
			s.holdMarketing(x.m.queue.tenant, x.marketing)
			x.verdict = "postponed"
		}
		if err == nil {
			s.cfg.Meter.Outcome(x.m.queue.capabilities.Name, x.verdict, 1)
		}
		if err == nil && x.settlement.State == puntuale.Failed {
			if r := x.m.queue.recipients[recipientKeyOf(&x.m.row)]; r != nil {
				r.removeBarrier(x.m.row.ID)
			}
		}
		s.forget(x.m)
		if leaves {
			s.requestRead(x.m.queue, true)
		}
	}
}

// holdMarketing notes until when a client's marketing waits, and postpones what is in memory. So it does not take the
// session's pace from other messages, and later leaves in its order.
func (s *scheduler) holdMarketing(t *tenantQueue, until time.Time) {
	if t.marketingFrom.Equal(until) {
		return
	}
	t.marketingFrom = until
	if until.IsZero() {
		return
	}
	for _, q := range s.queues {
		if q.tenant != t {
			continue
		}
		for _, m := range q.messages {
			if m.row.Purpose == puntuale.PurposeMarketing && !m.repeat() && (m.stage == loading || m.stage == ready) {
				s.timers.drop(&m.timer)
				s.overBudget(m)
			}
		}
	}
}

// overBudget postpones a message in memory, because the budget of the client's month is used up. The settler asks the store
// until when, and whether this still holds.
func (s *scheduler) overBudget(m *queuedMessage) {
	s.settle(m, puntuale.Settlement{State: puntuale.Pending, Next: m.row.Next}, waitsForBudget)
}
