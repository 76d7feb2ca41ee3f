package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"puntuale"
)

// membership is this node's part in the fleet. One goroutine renews the lease. Another goroutine manages the sessions,
// and reads the roster for this: the list of the living nodes, the node's own sessions and the free sessions.
// Therefore, a slow read of the roster never endangers the lease.
type membership struct {
	cfg   *Config
	sched *scheduler
	wake  chan struct{}
	beat  chan struct{} // signals that the node joined again

	mu       sync.Mutex
	node     puntuale.NodeID   // 0: the node is joining again
	nodes    []puntuale.NodeID // nodes that were alive at the last read of the roster
	nudged   bool
	woken    map[puntuale.SessionID]bool // sessions that were created or changed here; this node takes them even if another node should own them
	foreign  map[puntuale.SessionID]bool // woken sessions that belong to another node; nudge ignores them until the next beat
	released map[puntuale.SessionID]bool // drained sessions that may go to their new owners

	eager   time.Time                              // until this time the node looks for dead nodes often; only keepSessions uses eager
	targets map[puntuale.SessionID]puntuale.NodeID // new owners of sessions that must leave; only keepSessions uses targets
	free    map[puntuale.SessionID]time.Time       // since when a session has no owner; only keepSessions uses free
}

func newMembership(cfg *Config, s *scheduler) *membership {
	return &membership{
		cfg: cfg, sched: s,
		wake: make(chan struct{}, 1), beat: make(chan struct{}, 1),
		woken:    map[puntuale.SessionID]bool{},
		foreign:  map[puntuale.SessionID]bool{},
		released: map[puntuale.SessionID]bool{},
		targets:  map[puntuale.SessionID]puntuale.NodeID{},
		free:     map[puntuale.SessionID]time.Time{},
	}
}

// join registers the node with a new id and a new lease.
func (m *membership) join(ctx context.Context) error {
	node, err := m.cfg.Fleet.Join(ctx, m.cfg.Lease)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.node = node
	m.mu.Unlock()
	m.sched.health.joined(true)
	m.sched.health.lease.Store(true)
	m.sched.mailbox.post(func() { m.sched.node, m.sched.claims.counter = node, 0 })
	m.eager = m.cfg.Clock.Now().Add(2 * m.cfg.Lease)
	notify(m.beat)
	m.cfg.Logger.Info("joined the fleet", "node", int64(node))
	return nil
}

// leave frees the node's sessions and removes the node from the fleet. Call it after all goroutines of the membership
// have ended.
func (m *membership) leave(ctx context.Context) error {
	m.sched.health.joined(false)
	if m.node == 0 {
		return nil
	}
	err := m.cfg.Fleet.Leave(ctx, m.node)
	if errors.Is(err, puntuale.ErrFenced) {
		return nil
	}
	return err
}

// giveUp frees sessions before the node leaves. Call it after all goroutines of the membership have ended.
func (m *membership) giveUp(ctx context.Context, sessions []puntuale.SessionID) {
	if m.node == 0 || len(sessions) == 0 {
		return
	}
	if _, err := m.cfg.Fleet.Assign(ctx, m.node, 0, sessions); err != nil {
		m.cfg.Logger.Warn("freeing sessions failed", "error", err) // they become free when the node leaves
		return
	}
	m.cfg.Remote(0, time.Time{})
}

// rejoin makes the membership join the fleet again. Any goroutine may call it.
func (m *membership) rejoin(node puntuale.NodeID) {
	m.mu.Lock()
	if m.node == node {
		m.node = 0
	}
	m.mu.Unlock()
	notify(m.wake)
}

// nudge starts a read of the roster, because the session has a due message or has changed. Session 0 means any free
// session. If no node owns the session, only the node that should own it acts. If insist is true, this node takes a
// free session even if another node should own it, because the session was created or changed here. Any goroutine may
// call nudge.
func (m *membership) nudge(session puntuale.SessionID, changed, insist bool) {
	m.mu.Lock()
	look := (changed || !m.foreign[session]) && (insist || session == 0 || len(m.nodes) == 0 || target(session, m.nodes) == m.node)
	if look {
		m.nudged = true
		if session != 0 {
			m.woken[session] = true
		}
	}
	m.mu.Unlock()
	if look {
		notify(m.wake)
	}
}

// release allows a drained session to go to its new owner. Any goroutine may call it.
func (m *membership) release(session puntuale.SessionID) {
	m.mu.Lock()
	m.released[session] = true
	m.mu.Unlock()
	notify(m.wake)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// current returns the node's id in the fleet, or 0 if it has none.
func (m *membership) current() puntuale.NodeID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node
}

// margin is how long before the end of its lease the node stops claiming, if it could not renew the lease.
func (m *membership) margin() time.Duration { return m.cfg.Lease / 4 }

// keepLease renews the lease every Beat. The node counts the lease from the start of the last successful call, by the
// monotonic clock. When the lease is about to end, nothing is claimed until a call succeeds.
func (m *membership) keepLease(ctx context.Context) {
	low, stop := m.cfg.Clock.After(m.cfg.Lease - m.margin())
	wait := m.cfg.Beat
	for {
		fired, release := m.cfg.Clock.After(wait)
		select {
		case <-ctx.Done():
			release()
			stop()
			return
		case <-low:
			low = nil
			m.sched.health.lease.Store(false)
			m.cfg.Logger.Error("the lease could not be prolonged in time, nothing is claimed", "node", int64(m.current()))
			release()
			wait = 0 // the process may have been suspended for a while, so the next beat is due now
			continue
		case <-m.beat:
			// The node joined again with a new lease. Renew the lease immediately, because keepLease counts a lease
			// from its last renewal.
		case <-fired:
		}
		release()
		wait = m.cfg.Beat
		node := m.current()
		if node == 0 {
			continue
		}
		next, nextStop := m.cfg.Clock.After(m.cfg.Lease - m.margin())
		call, cancel := context.WithTimeout(ctx, m.cfg.Beat)
		err := m.cfg.Fleet.Beat(call, node, m.cfg.Lease)
		cancel()
		switch {
		case err == nil:
			stop()
			low, stop = next, nextStop
			if !m.sched.health.lease.Swap(true) {
				m.cfg.Logger.Info("the lease is prolonged again", "node", int64(node))
			}
			m.sched.mailbox.notify()
			continue
		case errors.Is(err, puntuale.ErrFenced):
			m.sched.mailbox.post(func() { m.sched.fenced(node) })
		case ctx.Err() == nil:
			wait = m.cfg.Beat / 4 // the lease is about to end, so try again soon
			m.cfg.Logger.Warn("prolonging the lease failed", "node", int64(node), "error", err)
		}
		nextStop()
	}
}

// eagerly is how often a node that has just joined looks for dead nodes. A dead node may be this process before its
// restart.
const eagerly = 500 * time.Millisecond

// keepSessions looks for dead nodes every Beat. It reads the roster every Poll, and immediately after nudge. Therefore,
// a new session has an owner within a Poll, even if a wakeup is lost. Exception: if the node that should own the
// session has just died, this takes about as long as a lease.
func (m *membership) keepSessions(ctx context.Context) {
	fired, release := m.cfg.Clock.After(0)
	defer func() { release() }()
	var next time.Time // when to look for dead nodes
	for {
		tick, beat := false, false
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-fired:
			now := m.cfg.Clock.Now()
			tick, beat = true, !now.Before(next) || next.Sub(now) > m.cfg.Beat // the second condition is true if the clock was set back, so that the beats do not stop
		}
		if m.current() == 0 {
			if err := m.join(ctx); err != nil {
				m.cfg.Logger.Warn("joining the fleet failed", "error", err)
				if m.cfg.Clock.Sleep(ctx, time.Second) != nil {
					return
				}
				notify(m.wake)
				continue
			}
			beat = true
		}
		m.handOver(ctx)
		switch {
		case beat:
			m.refresh(ctx)
			every := m.cfg.Beat
			if left := m.eager.Sub(m.cfg.Clock.Now()); left > 0 && left <= 2*m.cfg.Lease {
				every = min(every, eagerly)
			}
			next = m.cfg.Clock.Now().Add(every)
		case tick:
			m.expect()
			m.readRoster(ctx)
		default:
			m.readRoster(ctx)
			continue
		}
		release()
		fired, release = m.cfg.Clock.After(min(next.Sub(m.cfg.Clock.Now()), m.cfg.Poll))
	}
}

// expect makes the next call of readRoster read from the store. Without it, readRoster does nothing.
func (m *membership) expect() {
	m.mu.Lock()
	m.nudged = true
	m.mu.Unlock()
}

// refresh removes dead nodes and reads the roster.
func (m *membership) refresh(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	m.mu.Lock()
	clear(m.foreign)
	m.mu.Unlock()
	m.expect()
	if freed, err := m.cfg.Fleet.Reap(call); err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("removing dead nodes failed", "error", err)
		}
	} else if freed > 0 {
		m.cfg.Logger.Info("sessions of dead nodes are free", "sessions", freed)
	}
	m.readRoster(ctx)
}

// readRoster takes free sessions that this node should own. It begins to drain sessions that another node should own.
func (m *membership) readRoster(ctx context.Context) {
	m.mu.Lock()
	node, nudged, woken := m.node, m.nudged, m.woken
	m.nudged, m.woken = false, map[puntuale.SessionID]bool{}
	m.mu.Unlock()
	if node == 0 || !nudged {
		return
	}
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	nodes, sessions, err := m.cfg.Fleet.Roster(call, node)
	if err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("reading the roster failed", "error", err)
		}
		return
	}
	owned, leaving := m.sortSessions(node, nodes, sessions)
	taken := m.take(call, node, m.wanted(node, nodes, sessions, woken))
	for _, s := range sessions {
		if taken[s.ID] {
			s.Owner = node
			owned = append(owned, s)
		}
	}
	m.mu.Lock()
	m.nodes = nodes
	for id := range woken {
		m.foreign[id] = true
	}
	for _, s := range owned {
		delete(m.foreign, s.ID)
	}
	m.mu.Unlock()
	m.sched.mailbox.post(func() { m.sched.setSessions(node, owned, leaving) })
}

// sortSessions returns the node's own sessions, and which of them another node should own. A session in a pairing
// stays, because a move would end the pairing while a person is busy with it. Connectors end each pairing within
// minutes.
func (m *membership) sortSessions(node puntuale.NodeID, nodes []puntuale.NodeID, sessions []puntuale.Session) (owned []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	leaving = map[puntuale.SessionID]bool{}
	clear(m.targets)
	for _, s := range sessions {
		if s.Owner != node {
			continue
		}
		owned = append(owned, s)
		if to := target(s.ID, nodes); to != node && to != 0 && s.Link.State != puntuale.LinkPairing {
			leaving[s.ID] = true
			m.targets[s.ID] = to
		}
	}
	return owned, leaving
}

// wanted returns the free sessions that this node should take. There are three reasons to take a session. First: the
// hashing assigns the session to this node. Second: the session was created or changed on this node. Third: the session
// was free for a whole lease, because another node did not take it.
func (m *membership) wanted(node puntuale.NodeID, nodes []puntuale.NodeID, sessions []puntuale.Session, woken map[puntuale.SessionID]bool) (ids []puntuale.SessionID) {
	now := m.cfg.Clock.Now()
	still := make(map[puntuale.SessionID]time.Time)
	for _, s := range sessions {
		if s.Owner != 0 {
			continue
		}
		since, ok := m.free[s.ID]
		if !ok || since.After(now) { // the second condition is true if the clock was set back, so that the wait does not become longer
			since = now
		}
		still[s.ID] = since
		if woken[s.ID] || target(s.ID, nodes) == node || now.Sub(since) > m.cfg.Lease {
			ids = append(ids, s.ID)
		}
	}
	m.free = still
	return ids
}

func (m *membership) take(ctx context.Context, node puntuale.NodeID, ids []puntuale.SessionID) map[puntuale.SessionID]bool {
	taken := map[puntuale.SessionID]bool{}
	if len(ids) == 0 {
		return taken
	}
	got, err := m.cfg.Fleet.Assign(ctx, 0, node, ids)
	if err != nil {
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("taking sessions failed", "error", err)
		}
		return taken
	}
	for _, id := range got {
		taken[id] = true
		delete(m.free, id)
	}
	if len(got) > 0 {
		m.cfg.Logger.Info("took sessions", "node", int64(node), "sessions", len(got))
	}
	return taken
}

// handOver gives drained sessions to the nodes that should own them.
func (m *membership) handOver(ctx context.Context) {
	m.mu.Lock()
	released, node := m.released, m.node
	m.released = map[puntuale.SessionID]bool{}
	m.mu.Unlock()
	to := map[puntuale.NodeID][]puntuale.SessionID{}
	for id := range released {
		if t := m.targets[id]; t != 0 {
			to[t] = append(to[t], id)
		}
	}
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	for t, ids := range to {
		moved, err := m.cfg.Fleet.Assign(call, node, t, ids)
		if err != nil {
			if ctx.Err() == nil {
				m.cfg.Logger.Warn("letting sessions go failed", "error", err) // the next beat drains them again
			}
			continue
		}
		m.cfg.Logger.Info("let sessions go", "node", int64(node), "to", int64(t), "sessions", len(moved))
		m.sched.mailbox.post(func() { m.sched.sessionsMoved(node, moved) })
		for _, id := range moved {
			m.cfg.Remote(id, time.Time{})
		}
	}
}

// target returns the node that should own a session: the node with the highest hash of (session, node). Therefore, if a
// node joins, sessions move only to this node. If a node leaves, only its own sessions move.
func target(session puntuale.SessionID, nodes []puntuale.NodeID) (best puntuale.NodeID) {
	var high uint64
	for _, n := range nodes {
		if h := mix(mix(uint64(session)) ^ uint64(n)); best == 0 || h > high || h == high && n < best {
			best, high = n, h
		}
	}
	return best
}

// mix is the finaliser of the hash function SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
