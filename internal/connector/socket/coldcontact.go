//go:build !nosocket

package socket

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"puntuale"
)

// WhatsApp allows few messages to people who do not know the number. It refuses further messages with error 463 for a
// while, and in the end it bans the number. Therefore messages to these cold contacts have a pace of their own. While
// WhatsApp refuses cold contacts, only messages to them wait. All other messages go on.
const (
	pauseFirst   = time.Hour // how long cold contacts wait if the network does not say until when; later waits are longer
	pauseLongest = 24 * time.Hour
	pauseWord    = 2 * time.Second        // how long to wait for the network to say the end of a pause
	holdMargin   = 500 * time.Millisecond // added to the end that the network says
	soonEnough   = 3 * time.Second        // a message waits for its slot if the slot is this near; otherwise the message is deferred
	knownMost    = 50_000                 // people kept in memory
	slotsMost    = 20_000
	dayMost      = 10_000 // slots of a day that are looked at
	oneDay       = 24 * time.Hour
)

// coldContactLimiter is the cold-contact limiter of one number. Its methods may be called by many goroutines at once.
type coldContactLimiter struct {
	c       *Connector
	client  puntuale.ClientID
	session puntuale.SessionID

	mu       sync.Mutex
	pace     puntuale.Pace
	limitEnd time.Time // before this moment no message to a cold contact leaves
	pauses   int       // pauses in a row whose end the network did not say
	reported chan struct{}
	known    map[string]bool
	slots    map[puntuale.MessageID]time.Time // the moment when each message may leave
	next     time.Time                        // the first moment that the minute allows
	day      []time.Time                      // slots of the last 24 hours and of the future, in order
	seeded   bool
}

func newColdContactLimiter(n *number, s puntuale.Session) *coldContactLimiter {
	return &coldContactLimiter{
		c: n.c, client: s.Client, session: s.ID, pace: s.Pace, limitEnd: s.Link.Limited, reported: make(chan struct{}),
		known: map[string]bool{}, slots: map[puntuale.MessageID]time.Time{},
	}
}

// setPace takes another pace. Slots that were given stay.
func (s *coldContactLimiter) setPace(p puntuale.Pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace != p {
		s.pace, s.next = p, time.Time{}
	}
}

// free ends the wait of cold contacts, because another number was linked.
func (s *coldContactLimiter) free() { s.pause(time.Time{}) }

// knows reports whether a person ever wrote to the number, or got a message from it.
func (s *coldContactLimiter) knows(ctx context.Context, to string) (bool, error) {
	s.mu.Lock()
	known := s.known[to]
	s.mu.Unlock()
	if known {
		return true, nil
	}
	known, err := s.c.cfg.Known.Knows(ctx, s.client, s.session, to)
	if err != nil {
		return false, fmt.Errorf("look whether a number knows somebody: %w", err)
	}
	if known {
		s.learn(to)
	}
	return known, nil
}

// acquaint stores since when the number knows a person, unless it knew them before.
func (s *coldContactLimiter) acquaint(ctx context.Context, to string, at time.Time) error {
	s.mu.Lock()
	known := s.known[to]
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := s.c.cfg.Known.NoteKnown(ctx, s.client, s.session, to, at); err != nil {
		return err
	}
	s.learn(to)
	return nil
}

func (s *coldContactLimiter) learn(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= knownMost {
		clear(s.known) // the database knows
	}
	s.known[to] = true
}

// isCold reports whether a recipient is a cold contact. A group never is, because the number is a member of it.
func (s *coldContactLimiter) isCold(ctx context.Context, to string) (bool, error) {
	if !strings.HasPrefix(to, "+") && !strings.HasSuffix(to, "@lid") {
		return false, nil
	}
	known, err := s.knows(ctx, to)
	return !known, err
}

// held returns how long cold contacts must wait, or 0 if they need not wait.
func (s *coldContactLimiter) held(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.limitEnd) {
		return 0
	}
	return s.limitEnd.Sub(now) + holdMargin
}

// pause makes cold contacts wait until a moment. A zero moment ends the wait.
func (s *coldContactLimiter) pause(limitEnd time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limitEnd, s.pauses = limitEnd, 0
	close(s.reported)
	s.reported = make(chan struct{})
}

// refused makes cold contacts wait after the network refused a message to one of them. It returns until when they wait.
// The network may say the end, before the refusal or within pauseWord after it. If it says none, each pause is longer
// than the pause before.
func (s *coldContactLimiter) refused(ctx context.Context) time.Time {
	clock := s.c.cfg.Clock
	s.mu.Lock()
	limitEnd, reported := s.limitEnd, s.reported
	s.mu.Unlock()
	if !clock.Now().Before(limitEnd) {
		timeout, stop := clock.After(pauseWord)
		select {
		case <-reported:
		case <-timeout:
		case <-ctx.Done():
		}
		stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := clock.Now(); !now.Before(s.limitEnd) {
		s.limitEnd = now.Add(min(pauseFirst<<(2*min(s.pauses, 8)), pauseLongest))
		s.pauses++
	}
	return s.limitEnd
}

// slot returns the moment at which a message to a cold contact may leave. It is the same at each call until the message
// left.
func (s *coldContactLimiter) slot(ctx context.Context, m puntuale.MessageID) (time.Time, error) {
	if err := s.seed(ctx); err != nil {
		return time.Time{}, err
	}
	now := s.c.cfg.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, given := s.slots[m]; given {
		return at, nil
	}
	at := s.earliest(now)
	if len(s.slots) < slotsMost {
		s.take(m, at, now)
	}
	return at, nil
}

// earliest returns the first moment at which the pace allows one more message. The caller holds the lock.
func (s *coldContactLimiter) earliest(now time.Time) time.Time {
	at := now
	if s.pace.ColdPerMinute > 0 && s.next.After(at) {
		at = s.next
	}
	if limit := s.pace.ColdPerDay; limit > 0 && len(s.day) >= limit {
		if first := s.day[len(s.day)-limit].Add(oneDay); first.After(at) {
			at = first
		}
	}
	return at
}

// take gives a message a slot. The caller holds the lock.
func (s *coldContactLimiter) take(m puntuale.MessageID, at, now time.Time) {
	if len(s.slots)%1000 == 999 { // forget slots of messages that were cancelled
		for id, slot := range s.slots {
			if now.Sub(slot) > oneDay {
				delete(s.slots, id)
			}
		}
	}
	s.slots[m] = at
	if s.pace.ColdPerMinute > 0 {
		s.next = at.Add(time.Minute / time.Duration(s.pace.ColdPerMinute))
	}
	if s.pace.ColdPerDay > 0 {
		past := 0
		for past < len(s.day) && now.Sub(s.day[past]) >= oneDay {
			past++
		}
		s.day = append(slices.Delete(s.day, 0, past), at)
	}
}

// seed reads once how many cold contacts got a message in the last 24 hours.
func (s *coldContactLimiter) seed(ctx context.Context) error {
	s.mu.Lock()
	needed := !s.seeded && s.pace.ColdPerDay > 0
	s.mu.Unlock()
	if !needed {
		return nil
	}
	contacts, err := s.c.cfg.Known.MetSince(ctx, s.client, s.session, s.c.cfg.Clock.Now().Add(-oneDay), dayMost)
	if err != nil {
		return fmt.Errorf("read whom a number got to know: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seeded {
		s.day, s.seeded = append(s.day, contacts...), true
		slices.SortFunc(s.day, time.Time.Compare)
	}
	return nil
}

// noteSent forgets the slot of a message that left, or that will never leave under this id.
func (s *coldContactLimiter) noteSent(m puntuale.MessageID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slots, m)
}

// timelocked takes the network's report on whether it refuses cold contacts, and until when.
func (n *number) timelocked(e *events.NotifyAccountReachoutTimelock) {
	limitEnd := e.TimeEnforcementEnds.Time.UTC()
	switch {
	case !e.IsActive:
		limitEnd = time.Time{}
	case e.TimeEnforcementEnds.IsZero():
		limitEnd = n.c.cfg.Clock.Now().Add(pauseFirst)
	}
	n.coldContacts.pause(limitEnd)
	n.limited(limitEnd)
}

// limited reports until when cold contacts wait.
func (n *number) limited(limitEnd time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state := n.state.link.State; !n.closed && (state == puntuale.LinkOnline || state == puntuale.LinkLinked) {
		n.change(func(m *linkMachine) { m.limit(limitEnd) })
	}
}
