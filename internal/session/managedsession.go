package session

import (
	"context"
	"time"

	"puntuale"
)

// managedSession is one session in the manager. Its fields are guarded by the manager's lock.
type managedSession struct {
	session puntuale.Session
	linker  puntuale.Linker // nil: no connector can link it
	owned   bool            // it is the node's, and is not being released
	open    bool            // its connector has it, and its reports count

	work    []func(context.Context) // the waiting calls; one runs at a time
	working bool                    // a goroutine does the work
	cut     context.CancelFunc      // ends the command under way; nil before the first one

	begun   time.Time           // when the node last began to pair it; zero: never
	last    puntuale.LinkReport // the latest one
	told    int                 // how many reports came since it was opened
	stored  int                 // the number of the last report that is on disk
	changed chan struct{}       // closed when told or stored changes
}

// take makes the node the owner of a session. If fresh is true, the caller must open the session and then begin its work. Otherwise the
// session is opened after the work that is still under way. The caller holds the lock.
func (m *Manager) take(s *puntuale.Session) (fresh bool) {
	p := m.sessions[s.ID]
	if p == nil {
		p = &managedSession{changed: make(chan struct{})}
		m.sessions[s.ID] = p
	}
	if p.owned {
		return false
	}
	p.owned, p.session, p.linker = true, *s, m.cfg.Linker(*s)
	p.begun, p.last, p.told, p.stored = time.Time{}, puntuale.LinkReport{}, 0, 0
	delete(m.unsaved, s.ID)
	switch {
	case p.linker == nil:
		return false
	case p.working:
		m.enqueue(p, func(context.Context) {
			m.open(p)
			m.cfg.Changed(s.ID)
		})
		return false
	}
	p.working = true
	m.busy++
	return true
}

// paced gives a session's new pace to its connector. The caller holds the lock.
func (m *Manager) paced(s *puntuale.Session) {
	p := m.sessions[s.ID]
	if p == nil || !p.owned || p.session.Pace == s.Pace {
		return
	}
	p.session.Pace = s.Pace
	if pacer, can := p.linker.(puntuale.Pacer); can && p.open {
		pacer.SetPace(s.ID, s.Pace)
	}
}

// open opens a session at its connector, unless the session was released meanwhile.
func (m *Manager) open(p *managedSession) {
	m.mu.Lock()
	s, linker := p.session, p.linker
	p.open = p.owned
	open := p.open
	m.mu.Unlock()
	if open {
		linker.Open(s)
	}
}

// letGo makes a session close, and then calls done, which may be nil. The caller holds the lock.
func (m *Manager) letGo(p *managedSession, done func()) {
	p.owned = false
	delete(m.unsaved, p.session.ID)
	if p.cut != nil {
		p.cut()
	}
	m.tell(p)
	linker, id := p.linker, p.session.ID
	m.enqueue(p, func(ctx context.Context) {
		m.close(ctx, p, linker, id)
		if done != nil {
			done()
		}
	})
}

func (m *Manager) close(ctx context.Context, p *managedSession, linker puntuale.Linker, id puntuale.SessionID) {
	m.mu.Lock()
	open := p.open
	p.open = false
	m.mu.Unlock()
	if !open {
		return
	}
	ctx, cancel := m.within(ctx, closeWait)
	defer cancel()
	linker.Close(ctx, id)
}

// within returns a context that ends after d by the manager's clock. The caller must call cancel.
func (m *Manager) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	fired, release := m.cfg.Clock.After(d)
	m.wg.Go(func() {
		defer release()
		select {
		case <-fired:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// enqueue adds to a session's work. The caller holds the lock.
func (m *Manager) enqueue(p *managedSession, do func(context.Context)) {
	p.work = append(p.work, do)
	if !p.working {
		p.working = true
		m.busy++
		m.begin(p)
	}
}

// begin starts a goroutine for the work of a session, if there is any. The session is marked as working. The caller holds the lock.
func (m *Manager) begin(p *managedSession) {
	if len(p.work) == 0 {
		m.end(p)
		return
	}
	m.wg.Go(func() { m.labour(p) })
}

// labour does a session's work until none is left.
func (m *Manager) labour(p *managedSession) {
	for {
		m.mu.Lock()
		if len(p.work) == 0 {
			m.end(p)
			m.mu.Unlock()
			return
		}
		do := p.work[0]
		p.work = p.work[1:]
		m.mu.Unlock()
		do(m.ctx)
	}
}

// end marks a session's work as done. It forgets the session if it is not the node's. The caller holds the lock.
func (m *Manager) end(p *managedSession) {
	p.work, p.working = nil, false
	m.busy--
	if !p.owned {
		delete(m.sessions, p.session.ID)
	}
	m.rested()
}

// tell wakes the goroutines that wait for a change of a session. The caller holds the lock.
func (m *Manager) tell(p *managedSession) {
	close(p.changed)
	p.changed = make(chan struct{})
}
