package dispatch

import (
	"context"
	"errors"
	"time"

	"puntuale"
)

const (
	claimers    = 2      // the largest number of claims at the same time, if there is a backlog
	maxClaim    = 512    // the largest number of messages in one claim
	maxInFlight = 32_768 // the largest number of attempts without a recorded outcome
	claimRetry  = 200 * time.Millisecond
)

// claims is the state of claiming.
type claims struct {
	running int
	full    bool // true: the last claim had the largest size, so there is a backlog
	counter int64
	resume  time.Time // after a failure, nothing is claimed before this time
	stuck   bool      // true: outcomes cannot be recorded, because the store does not answer
}

// claim begins the attempts of messages that may leave now. Messages that become due while a claim commits are part of
// the next claim. Several claims run at the same time only if there is a backlog. Without a backlog, two small claims
// at the same time would take longer than the same claims one after the other.
func (s *scheduler) claim(now time.Time) {
	for s.claims.running == 0 || s.claims.full && s.claims.running < claimers {
		if !s.mayClaim(now) {
			return
		}
		batch := s.batch(now)
		s.claims.full = len(batch) == maxClaim
		if len(batch) == 0 {
			return
		}
		s.startClaim(batch, now)
	}
}

func (s *scheduler) mayClaim(now time.Time) bool {
	if s.node == 0 || s.life.retiring || s.claims.stuck || s.attempts.count() >= maxInFlight || !s.health.leased() {
		return false
	}
	return !now.Before(s.claims.resume) || s.claims.resume.Sub(now) > claimRetry
}

// batch takes the messages of one claim from the fair queue.
func (s *scheduler) batch(now time.Time) (batch []*queuedMessage) {
	for len(batch) < maxClaim {
		q := s.fair.next()
		if q == nil {
			break
		}
		m := s.take(q, now)
		if m == nil {
			continue
		}
		s.markInFlight(m, now)
		batch = append(batch, m)
		s.fair.activate(q)
	}
	return batch
}

// markInFlight removes a message from its queue, and counts it as in flight.
func (s *scheduler) markInFlight(m *queuedMessage, now time.Time) {
	q := m.queue
	m.stage, m.begun = claiming, now
	if m.repeat() {
		m.begun = m.row.IntentAt
	}
	s.removeFromMemory(m)
	s.attempts.add(m)
	q.inFlight++
	q.unrecorded++
	if !m.repeat() {
		r := q.recipient(recipientKeyOf(&m.row))
		r.remove(m)
		r.busy = m
	}
}

func (s *scheduler) startClaim(batch []*queuedMessage, now time.Time) {
	s.claims.running++
	s.claims.counter++
	node := s.node
	token := int64(node)<<32 | s.claims.counter
	items := make([]puntuale.ClaimItem, len(batch))
	for i, m := range batch {
		m.token = token
		items[i] = puntuale.ClaimItem{MessageRef: m.ref(), Session: m.row.Session, Campaign: m.row.Campaign, Phone: m.row.Phone, Intent: m.row.Intent, Purpose: m.row.Purpose}
		if m.queue.tenant.erased && s.cfg.Mark != nil {
			items[i].Mark = s.cfg.Mark(m.row.Client, m.row.Phone)
		}
	}
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		granted, err := guarded(s, func() ([]puntuale.ClaimAnswer, error) {
			return s.cfg.Queue.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: now, Messages: items})
		})
		if err == nil && len(granted) != len(items) {
			err = errors.New("the claim's answer has another length")
		}
		took := s.cfg.Clock.Now().Sub(now)
		s.mailbox.post(func() { s.claimed(node, token, batch, granted, err) })
		if err != nil {
			return
		}
		s.cfg.Meter.Batch("claim", len(batch), took)
		for i, m := range batch {
			if granted[i] != puntuale.ClaimGranted {
				continue
			}
			if m.row.Attempt == 0 {
				s.cfg.Meter.Late(now.Add(took).Sub(m.row.Next))
			}
			if o, missed := s.missed(m, s.cfg.Clock.Now()); missed {
				s.mailbox.ended(sendResult{m: m, outcome: o})
				continue
			}
			s.startSend(m)
		}
	})
}

// missed reports whether the message may no longer leave, because its window or deadline ended while the claim
// committed. Nothing was sent, so the outcome o makes the message pending again. The message then waits for its window,
// or expires. A repeat stays uncertain. Any goroutine may call missed.
func (s *scheduler) missed(m *queuedMessage, now time.Time) (o puntuale.Outcome, missed bool) {
	next, inside := insideWindow(m.window, m.zone, now)
	expired := m.expired(now)
	if inside && !expired {
		return o, false
	}
	if m.repeat() {
		return puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.giveUpAt(&m.row), Detail: uncertainDetail}, true
	}
	if expired || next.IsZero() || next.After(m.row.ValidUntil) {
		next = m.row.ValidUntil
	}
	return puntuale.Outcome{Verdict: puntuale.Retry, Next: next}, true
}

// claimed handles the answer to a claim.
func (s *scheduler) claimed(node puntuale.NodeID, token int64, batch []*queuedMessage, granted []puntuale.ClaimAnswer, err error) {
	now := s.cfg.Clock.Now()
	s.claims.running--
	if !errors.Is(err, puntuale.ErrFenced) {
		s.health.claimed(err == nil, now)
	}
	if err != nil {
		s.lostClaim(node, token, batch, err, now)
		return
	}
	s.claims.resume = time.Time{}
	lost := 0
	for i, m := range batch {
		switch granted[i] {
		case puntuale.ClaimGranted:
			m.stage, m.sentPoll = sending, s.polls.count
			continue
		case puntuale.ClaimHeld:
			s.stopTenant(m.queue.tenant)
		case puntuale.ClaimPaused:
			s.dropCampaign(m.queue, m.row.Campaign)
		case puntuale.ClaimUnmarked:
			s.unmarked(m.queue)
		case puntuale.ClaimBudget:
			s.refusedMarketing(m)
			continue
		case puntuale.ClaimBlacklisted:
			s.cfg.Meter.Outcome(m.queue.capabilities.Name, "blacklisted", 1)
		case puntuale.ClaimNoConsent, puntuale.ClaimNumberChanged:
			s.cfg.Meter.Outcome(m.queue.capabilities.Name, "failed", 1)
		default:
			lost++
		}
		m.queue.lookahead.ReadFromStart()
		untouched := granted[i] == puntuale.ClaimHeld || granted[i] == puntuale.ClaimPaused || granted[i] == puntuale.ClaimUnmarked
		s.freeSlot(m, !untouched)
		s.finished(m)
	}
	if lost > 0 {
		s.cfg.Meter.Fenced(lost)
	}
}

// refusedMarketing postpones a message that a claim refused, because the budget of the client's month is used up. Later
// messages to the recipient do not wait for it.
func (s *scheduler) refusedMarketing(m *queuedMessage) {
	s.freeSlot(m, true)
	s.finished(m)
	if m.queue.lost() {
		return
	}
	s.addToMemory(m) // so that no read finds it before it is postponed
	s.overBudget(m)
}

// lostClaim handles a claim without an answer. The database may have committed the claim, but no message of it was
// sent. Therefore, if a later read finds a row with the claim's token, recover makes the message pending again.
func (s *scheduler) lostClaim(node puntuale.NodeID, token int64, batch []*queuedMessage, err error, now time.Time) {
	for _, m := range batch {
		m.queue.lookahead.ReadFromStart()
		s.freeSlot(m, false)
		s.finished(m)
	}
	if errors.Is(err, puntuale.ErrFenced) {
		s.fenced(node)
		return
	}
	s.attempts.unsent[token] = now
	s.claims.resume = now.Add(claimRetry)
	if s.life.ctx.Err() == nil {
		s.cfg.Logger.Warn("a claim failed", "error", err)
	}
}

// freeSlot frees the slot of a message whose claim or attempt is over. The recipient's next message may then leave.
// ended is true if the message did not go into retry.
func (s *scheduler) freeSlot(m *queuedMessage, ended bool) {
	q := m.queue
	q.inFlight--
	if !m.repeat() {
		r := q.recipient(recipientKeyOf(&m.row))
		if r.busy == m {
			r.busy = nil
		}
		if ended {
			r.removeBarrier(m.row.ID)
		}
		s.advance(q, recipientKeyOf(&m.row))
	}
	s.fair.activate(q)
}

// finished removes from memory an attempt whose outcome is on disk, or an attempt that never took place.
func (s *scheduler) finished(m *queuedMessage) {
	m.stage = gone
	s.attempts.remove(m.row.ID)
	m.queue.unrecorded--
	s.releaseLeaving(m.queue)
	if q := s.queues[m.row.Session]; q != nil {
		q.lookahead.Leave(m.row.ID)
		s.notifyDrained(q)
		s.refill(q)
	}
}

// stopTenant stops sending a client's messages until the client may send again. It writes nothing to the store.
func (s *scheduler) stopTenant(t *tenantQueue) {
	if t.stopped {
		return
	}
	t.stopped, t.reason = true, ""
	for _, q := range s.queues {
		if q.tenant == t {
			s.clear(q)
			q.lookahead.ExpireNow()
		}
	}
}

// unmarked records that a client's claims need keyed hashes (Mark), because the client erased persons. Messages that
// were refused ([puntuale.ClaimUnmarked]) are read again immediately.
func (s *scheduler) unmarked(q *sessionQueue) {
	if s.cfg.Mark == nil {
		s.stopTenant(q.tenant)
		return
	}
	q.tenant.erased = true
	s.requestRead(q, true)
}

// askSendPermissions asks the store which stopped clients may send again.
func (s *scheduler) askSendPermissions(stopped map[puntuale.ClientID]bool) {
	if len(stopped) == 0 || s.fair.asking {
		return
	}
	clients := make([]puntuale.ClientID, 0, len(stopped))
	for c := range stopped {
		clients = append(clients, c)
	}
	s.fair.asking = true
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		found, err := guarded(s, func() (map[puntuale.ClientID]puntuale.SendPermission, error) {
			return s.cfg.Queue.SendPermissions(ctx, clients)
		})
		s.mailbox.post(func() { s.gotSendPermissions(found, err) })
	})
}

func (s *scheduler) gotSendPermissions(found map[puntuale.ClientID]puntuale.SendPermission, err error) {
	s.fair.asking = false
	if err != nil {
		return // the next poll asks the store again
	}
	now := s.cfg.Clock.Now()
	for client, permission := range found {
		t := s.fair.tenants[client]
		if t == nil || !t.stopped {
			continue
		}
		if t.reason = permission.WaitReason(now); t.reason != "" {
			continue
		}
		t.stopped = false
		for _, q := range s.queues {
			if q.tenant == t {
				s.resume(q)
			}
		}
	}
}
