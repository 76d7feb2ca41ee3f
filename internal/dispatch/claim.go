package dispatch

import (
	"context"
	"errors"
	"time"

	"puntuale"
)

const (
	claimers     = 2      // claims under way at once, of a backlog
	claimMost    = 512    // messages a claim
	inFlightMost = 32_768 // attempts without a recorded outcome
	claimRetry   = 200 * time.Millisecond
)

// claims is what the scheduler knows of its claims under way.
type claims struct {
	running int
	full    bool // the last one was: there is a backlog
	counter int64
	resume  time.Time // after a failure: not before
	stuck   bool      // outcomes cannot be recorded: the store is away
}

// claim begins the attempts of whatever may leave now. A claim waits for nothing; what comes due while it commits is the
// next one's. Only a backlog has several under way: with less, two small ones at once take longer than one after the other.
func (s *scheduler) claim(now time.Time) {
	for s.claims.running == 0 || s.claims.full && s.claims.running < claimers {
		if !s.mayClaim(now) {
			return
		}
		batch := s.batch(now)
		s.claims.full = len(batch) == claimMost
		if len(batch) == 0 {
			return
		}
		s.startClaim(batch, now)
	}
}

func (s *scheduler) mayClaim(now time.Time) bool {
	if s.node == 0 || s.retiring || s.claims.stuck || len(s.alive) >= inFlightMost || !s.health.leased() {
		return false
	}
	return !now.Before(s.claims.resume) || s.claims.resume.Sub(now) > claimRetry
}

// batch takes one message of each client in turn.
func (s *scheduler) batch(now time.Time) (batch []*entry) {
	for len(batch) < claimMost {
		l := s.nextTurn()
		if l == nil {
			break
		}
		e := s.take(l, now)
		if e == nil {
			continue
		}
		s.begin(e, now)
		batch = append(batch, e)
		s.activate(l)
	}
	return batch
}

// begin takes a message out of its queue and into flight.
func (s *scheduler) begin(e *entry, now time.Time) {
	l := e.lane
	e.stage, e.begun = claiming, now
	if e.repeat() {
		e.begun = e.m.IntentAt
	}
	s.drop(e)
	s.alive[e.m.ID] = e
	l.inflight++
	l.open++
	if !e.repeat() {
		r := l.recipient(personOf(&e.m))
		r.remove(e)
		r.busy = e
	}
}

func (s *scheduler) startClaim(batch []*entry, now time.Time) {
	s.claims.running++
	s.claims.counter++
	node := s.node
	token := int64(node)<<32 | s.claims.counter
	items := make([]puntuale.ClaimItem, len(batch))
	for i, e := range batch {
		e.token = token
		items[i] = puntuale.ClaimItem{MessageRef: e.ref(), Session: e.m.Session, Campaign: e.m.Campaign, Phone: e.m.Phone, Intent: e.m.Intent}
		if e.lane.share.erased && s.cfg.Mark != nil {
			items[i].Mark = s.cfg.Mark(e.m.Client, e.m.Phone)
		}
	}
	s.wg.Go(func() {
		s.beforeClaim(batch)
		ctx, cancel := context.WithTimeout(s.ctx, callWait)
		defer cancel()
		granted, err := s.cfg.Queue.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: now, Messages: items})
		if err == nil && len(granted) != len(items) {
			err = errors.New("the claim's answer has another length")
		}
		took := s.cfg.Clock.Now().Sub(now)
		s.box.post(func() { s.claimed(node, token, batch, granted, err) })
		if err != nil {
			return
		}
		s.cfg.Meter.Batch("claim", len(batch), took)
		for i, e := range batch {
			if granted[i] != puntuale.ClaimGranted {
				continue
			}
			if e.m.Attempt == 0 {
				s.cfg.Meter.Late(now.Add(took).Sub(e.m.Next))
			}
			if o, missed := s.missed(e, s.cfg.Clock.Now()); missed {
				s.box.ended(attempt{e: e, outcome: o})
				continue
			}
			s.afterClaim(e)
		}
	})
}

// missed tells whether a message's time went by while its claim waited to be committed: nothing was sent, so it is open
// again, for its window or its end. A repeat stays as uncertain as it was. Any goroutine.
func (s *scheduler) missed(e *entry, now time.Time) (o puntuale.Outcome, missed bool) {
	next, inside := insideWindow(e.window, e.zone, now)
	expired := e.expired(now)
	if inside && !expired {
		return o, false
	}
	if e.repeat() {
		return puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.deadline(&e.m), Detail: uncertainDetail}, true
	}
	if expired || next.IsZero() || next.After(e.m.ValidUntil) {
		next = e.m.ValidUntil
	}
	return puntuale.Outcome{Verdict: puntuale.Retry, Next: next}, true
}

// claimed learns what became of a claim.
func (s *scheduler) claimed(node puntuale.NodeID, token int64, batch []*entry, granted []puntuale.Granted, err error) {
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
	for i, e := range batch {
		if e.stage != claiming {
			continue // the mutation's answers come before the claim's
		}
		switch granted[i] {
		case puntuale.ClaimGranted:
			e.stage, e.sent = sending, s.polls
			continue
		case puntuale.ClaimHeld:
			s.holdClient(e.lane.share)
		case puntuale.ClaimPaused:
			s.pausedCampaign(e.lane, e.m.Campaign)
		case puntuale.ClaimUnmarked:
			s.unmarked(e.lane)
		case puntuale.ClaimBlacklisted:
			s.cfg.Meter.Outcome(e.lane.traits.Name, "blacklisted", 1)
		default:
			lost++
		}
		e.lane.lookahead.Stray()
		untouched := granted[i] == puntuale.ClaimHeld || granted[i] == puntuale.ClaimPaused || granted[i] == puntuale.ClaimUnmarked
		s.landed(e, !untouched)
		s.finished(e)
	}
	if lost > 0 {
		s.cfg.Meter.Fenced(lost)
	}
}

// lostClaim handles a claim without an answer. It may have been committed all the same; but nothing of it was sent, so
// rows found with its token later are simply opened again.
func (s *scheduler) lostClaim(node puntuale.NodeID, token int64, batch []*entry, err error, now time.Time) {
	for _, e := range batch {
		e.lane.lookahead.Stray()
		s.landed(e, false)
		s.finished(e)
	}
	if errors.Is(err, puntuale.ErrFenced) {
		s.fenced(node)
		return
	}
	if sendsUnclaimed {
		return
	}
	s.orphan[token] = now
	s.claims.resume = now.Add(claimRetry)
	if s.ctx.Err() == nil {
		s.log.Warn("a claim failed", "error", err)
	}
}

// landed frees the slot of a message that is no longer claimed or sent, and lets its recipient's next one go. over tells
// that it is not in retry either.
func (s *scheduler) landed(e *entry, over bool) {
	l := e.lane
	l.inflight--
	if !e.repeat() {
		r := l.recipient(personOf(&e.m))
		if r.busy == e {
			r.busy = nil
		}
		if over {
			r.release(e.m.ID)
		}
		s.advance(l, personOf(&e.m))
	}
	s.activate(l)
}

// finished forgets an attempt: its outcome is on disk, or there was none.
func (s *scheduler) finished(e *entry) {
	e.stage = gone
	delete(s.alive, e.m.ID)
	e.lane.open--
	s.drained(e.lane)
	if l := s.lanes[e.m.Session]; l != nil {
		l.lookahead.Leave(e.m.ID)
		s.isQuiet(l)
		s.refill(l)
	}
}

// holdClient stops a client's messages in memory until its standing lets them leave again. Nothing is written.
func (s *scheduler) holdClient(sh *share) {
	if sh.held {
		return
	}
	sh.held, sh.why = true, ""
	for _, l := range s.lanes {
		if l.share == sh {
			s.clear(l)
			l.lookahead.ExpireNow()
		}
	}
}

// unmarked learns that a client's claims need marks. What was refused for it is read again at once.
func (s *scheduler) unmarked(l *lane) {
	if s.cfg.Mark == nil {
		s.holdClient(l.share)
		return
	}
	l.share.erased = true
	s.want(l, true)
}

// askStandings looks whether clients that had to wait may send again.
func (s *scheduler) askStandings(held map[puntuale.ClientID]bool) {
	if len(held) == 0 || s.asking {
		return
	}
	clients := make([]puntuale.ClientID, 0, len(held))
	for c := range held {
		clients = append(clients, c)
	}
	s.asking = true
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, callWait)
		defer cancel()
		found, err := s.cfg.Queue.Standings(ctx, clients)
		s.box.post(func() { s.gotStandings(found, err) })
	})
}

func (s *scheduler) gotStandings(found map[puntuale.ClientID]puntuale.Standing, err error) {
	s.asking = false
	if err != nil {
		return // asked again at the next poll
	}
	now := s.cfg.Clock.Now()
	for client, standing := range found {
		sh := s.shares[client]
		if sh == nil || !sh.held {
			continue
		}
		if sh.why = standing.Hold(now); sh.why != "" {
			continue
		}
		sh.held = false
		for _, l := range s.lanes {
			if l.share == sh {
				s.resume(l)
			}
		}
	}
}
