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

// A cold contact is a person who does not know the number. WhatsApp allows few messages to cold contacts. It refuses
// further messages with error 463 for some time, and later it bans the number. Therefore messages to cold contacts have
// a pace of their own. While WhatsApp refuses messages to cold contacts, all other messages still leave.
const (
	pauseFirst   = time.Hour // how long messages to cold contacts wait if the network gives no end; each later wait is four times as long, up to pauseLongest
	pauseLongest = 24 * time.Hour
	pauseWord    = 2 * time.Second        // how long to wait for the network's report of a pause's end
	holdMargin   = 500 * time.Millisecond // added to the end that the network reports
	soonEnough   = 3 * time.Second        // a message waits for its slot for at most this time; if the slot is later, the message is deferred
	maxKnown     = 50_000                 // how many people are in memory at most
	maxSlots     = 20_000
	maxDaySlots  = 10_000 // the most slots of the last day that are read from the store
	oneDay       = 24 * time.Hour
)

// coldContactLimiter is the cold-contact limiter of one number. It is safe for concurrent use.
type coldContactLimiter struct {
	c       *Connector
	client  puntuale.ClientID
	session puntuale.SessionID

	mu       sync.Mutex
	pace     puntuale.Pace
	limitEnd time.Time // before this time no message to a cold contact leaves
	pauses   int       // how many pauses in a row had no end from the network
	reported chan struct{}
	known    map[string]bool
	slots    map[puntuale.MessageID]time.Time // when each message may leave
	next     time.Time                        // the earliest time that the pace per minute allows
	day      []time.Time                      // the times of all slots of the last 24 hours and of the future, oldest first
	seeded   bool
}

func newColdContactLimiter(n *number, s puntuale.Session) *coldContactLimiter {
	return &coldContactLimiter{
		c: n.c, client: s.Client, session: s.ID, pace: s.Pace, limitEnd: s.Link.Limited, reported: make(chan struct{}),
		known: map[string]bool{}, slots: map[puntuale.MessageID]time.Time{},
	}
}

// setPace sets a new pace. Slots that messages already have do not change.
func (s *coldContactLimiter) setPace(p puntuale.Pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace != p {
		s.pace, s.next = p, time.Time{}
	}
}

// free ends the wait of messages to cold contacts, because the session was unlinked, or linked to a new number.
func (s *coldContactLimiter) free() { s.pause(time.Time{}) }

// knows reports whether a recipient ever wrote to the number, or got a message from it.
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

// acquaint stores since when the number knows a recipient. If a time is already stored, acquaint does not change it.
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
	if len(s.known) >= maxKnown {
		clear(s.known) // the database still contains these people
	}
	s.known[to] = true
}

// isCold reports whether a recipient is a cold contact. A group is never a cold contact, because the number is a member
// of the group.
func (s *coldContactLimiter) isCold(ctx context.Context, to string) (bool, error) {
	if !strings.HasPrefix(to, "+") && !strings.HasSuffix(to, "@lid") {
		return false, nil
	}
	known, err := s.knows(ctx, to)
	return !known, err
}

// held returns how much longer messages to cold contacts must wait. 0 means that they need not wait.
func (s *coldContactLimiter) held(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.limitEnd) {
		return 0
	}
	return s.limitEnd.Sub(now) + holdMargin
}

// pause makes messages to cold contacts wait until limitEnd. A zero limitEnd ends the wait.
func (s *coldContactLimiter) pause(limitEnd time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limitEnd, s.pauses = limitEnd, 0
	close(s.reported)
	s.reported = make(chan struct{})
}

// refused makes messages to cold contacts wait, after the network refused one of them. It returns the end of the wait.
// The network may report this end before the refusal, or within pauseWord after it. If the network reports no end, each
// pause is longer than the previous one, up to pauseLongest.
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

// slot returns when a message to a cold contact may leave. It returns the same time at each call until the message
// left, except if maxSlots messages already have a slot.
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
	if len(s.slots) < maxSlots {
		s.take(m, at, now)
	}
	return at, nil
}

// earliest returns the first time at which the pace allows one more message. The caller holds the lock.
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

// take reserves a slot for a message. The slot's time is the argument at. The caller holds the lock.
func (s *coldContactLimiter) take(m puntuale.MessageID, at, now time.Time) {
	if len(s.slots)%1000 == 999 { // remove slots of messages that were cancelled
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

// seed reads from the store, once, which cold contacts got a message in the last 24 hours.
func (s *coldContactLimiter) seed(ctx context.Context) error {
	s.mu.Lock()
	needed := !s.seeded && s.pace.ColdPerDay > 0
	s.mu.Unlock()
	if !needed {
		return nil
	}
	contacts, err := s.c.cfg.Known.MetSince(ctx, s.client, s.session, s.c.cfg.Clock.Now().Add(-oneDay), maxDaySlots)
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

// noteSent removes the slot of a message that left, or that will never leave under this id.
func (s *coldContactLimiter) noteSent(m puntuale.MessageID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slots, m)
}

// timelocked handles a report of the network. The report says whether the network refuses messages to cold contacts,
// and until when.
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

// limited reports the time until which messages to cold contacts wait.
func (n *number) limited(limitEnd time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state := n.state.link.State; !n.closed && (state == puntuale.LinkOnline || state == puntuale.LinkLinked) {
		n.change(func(m *linkMachine) { m.limit(limitEnd) })
	}
}
