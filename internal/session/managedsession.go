package session

import (
	"context"
	"time"

	"puntuale"
)

// managedSession is one session in the manager. The manager's lock guards its fields.
type managedSession struct {
	session puntuale.Session
	linker  puntuale.Linker // connector of the session; nil: no connector can link the session
	owned   bool            // true: the node owns the session, and is not releasing it
	open    bool            // true: the connector has opened the session, and the manager accepts its reports

	work    []func(context.Context) // calls that wait; one runs at a time
	working bool                    // true: a goroutine runs the calls
	cut     context.CancelFunc      // cancels the running command; nil before the first command

	begun   time.Time           // when the node last began a pairing of the session; zero: never
	last    puntuale.LinkReport // the latest report
	reports int                 // number of reports since the session was opened
	stored  int                 // number of the last report that is on disk
	changed chan struct{}       // closed when the field reports or the field stored changes
}

// take makes the node the owner of a session. If fresh is true, the caller must open the session, and then call begin.
// If fresh is false and the session has running work, the session is opened after this work. The caller must hold the
// lock.
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
	p.begun, p.last, p.reports, p.stored = time.Time{}, puntuale.LinkReport{}, 0, 0
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

// paced passes a session's new pace to the connector. The caller must hold the lock.
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

// open opens a session at its connector, unless the session was released in the meantime.
func (m *Manager) open(p *managedSession) {
	m.mu.Lock()
	s, linker := p.session, p.linker
	p.open = p.owned
	open := p.open
	m.mu.Unlock()
	if open {
		m.guarded(s.ID, func() { linker.Open(s) })
	}
}

// guarded calls a connector. If the connector panics, only this session does not work.
func (m *Manager) guarded(id puntuale.SessionID, call func()) {
	if err := puntuale.Recovered(func() error { call(); return nil }); err != nil {
		m.cfg.Logger.Error("a connector panicked", "session_id", int64(id), "error", err)
	}
}

// letGo releases a session. It adds a call that closes the session and then calls done, which may be nil. The caller
// must hold the lock.
func (m *Manager) letGo(p *managedSession, done func()) {
	p.owned = false
	delete(m.unsaved, p.session.ID)
	if p.cut != nil {
		p.cut()
	}
	m.notify(p)
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
	m.guarded(id, func() { linker.Close(ctx, id) })
}

// within returns a context that ends after the duration d, by the manager's clock. The caller must call cancel.
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

// enqueue adds a call to a session's work. The caller must hold the lock.
func (m *Manager) enqueue(p *managedSession, do func(context.Context)) {
	p.work = append(p.work, do)
	if !p.working {
		p.working = true
		m.busy++
		m.begin(p)
	}
}

// begin starts a goroutine for a session's work. If there is no work, it calls end. The session must already be marked
// as working. The caller must hold the lock.
func (m *Manager) begin(p *managedSession) {
	if len(p.work) == 0 {
		m.end(p)
		return
	}
	m.wg.Go(func() { m.runWork(p) })
}

// runWork runs a session's calls until no call is left.
func (m *Manager) runWork(p *managedSession) {
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

// end marks a session's work as done. If the node no longer owns the session, the manager removes the session. The
// caller must hold the lock.
func (m *Manager) end(p *managedSession) {
	p.work, p.working = nil, false
	m.busy--
	if !p.owned {
		delete(m.sessions, p.session.ID)
	}
	m.notifyIdle()
}

// notify wakes the goroutines that wait for a change of a session. The caller must hold the lock.
func (m *Manager) notify(p *managedSession) {
	close(p.changed)
	p.changed = make(chan struct{})
}
