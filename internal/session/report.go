package session

import (
	"context"
	"errors"
	"strings"

	"puntuale"
)

// Report accepts a connector's report about a session. The report is stored soon. If the node has not opened the
// session, the report is ignored. Report never blocks.
func (m *Manager) Report(r puntuale.LinkReport) {
	if r.State <= puntuale.LinkAsCreated || r.State > puntuale.LinkOnline {
		m.cfg.Logger.Error("a connector reports a state that there is not", "session_id", int64(r.Session), "state", int(r.State))
		return
	}
	m.mu.Lock()
	p := m.sessions[r.Session]
	if p == nil || !p.open || !p.owned {
		m.mu.Unlock()
		return
	}
	before := p.stateOf()
	m.note(p, r)
	m.mu.Unlock()
	if (before == puntuale.LinkOnline) != (r.State == puntuale.LinkOnline) {
		m.cfg.Changed(r.Session)
	}
}

// note records a report for storing, unless it equals the last report. The caller must hold the lock.
func (m *Manager) note(p *managedSession, r puntuale.LinkReport) {
	if p.reports > 0 && p.last.Equal(r) {
		return
	}
	p.last = r
	p.reports++
	m.unsaved[r.Session] = p
	m.notify(p)
	ring(m.dirty)
}

// keepLinks stores reports when they arrive. More reports may arrive during a write; the next write stores all of them.
func (m *Manager) keepLinks() {
	for {
		select {
		case <-m.dirty:
		case <-m.ctx.Done():
			return
		}
		for {
			stored, err := m.storeLinks()
			if err == nil && stored == 0 {
				break
			}
			if err == nil {
				continue
			}
			if !errors.Is(err, puntuale.ErrFenced) && m.ctx.Err() == nil { // if the lease has ended, this node soon loses these sessions or gets a new lease
				m.cfg.Logger.Warn("storing the links of sessions failed", "error", err)
			}
			if m.cfg.Clock.Sleep(m.ctx, writeRetry) != nil {
				return
			}
		}
	}
}

// pendingReport is a report that storeLinks is writing.
type pendingReport struct {
	id      puntuale.SessionID
	managed *managedSession
	count   int
}

// storeLinks stores the latest unsaved report of each session, and returns how many reports it stored.
func (m *Manager) storeLinks() (int, error) {
	m.mu.Lock()
	node := m.node
	links := map[puntuale.SessionID]puntuale.Link{}
	var batch []pendingReport
	for id, p := range m.unsaved {
		if len(batch) == maxWritten {
			break
		}
		links[id] = m.linkOf(p)
		batch = append(batch, pendingReport{id, p, p.reports})
	}
	m.mu.Unlock()
	if len(batch) == 0 || node == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, callWait)
	defer cancel()
	if err := m.cfg.Keeper.SetLinks(ctx, node, m.cfg.Clock.Now(), links); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range batch {
		if m.unsaved[u.id] != u.managed {
			continue // the session was released in the meantime
		}
		if u.managed.reports == u.count {
			delete(m.unsaved, u.id)
		}
		u.managed.stored = max(u.managed.stored, u.count)
		m.notify(u.managed)
	}
	return len(batch), nil
}

// linkOf returns the link to store, from a session's latest report. The caller must hold the lock.
func (m *Manager) linkOf(p *managedSession) puntuale.Link {
	r := p.last
	l := puntuale.Link{State: r.State, Number: storable(r.Number), Detail: r.Detail, Condition: r.Condition, Limited: r.Limited, Restricted: r.Restricted}
	if r.State != puntuale.LinkPairing {
		l.Until = r.Until
	} else {
		l.Since = p.begun
	}
	if r.State == puntuale.LinkPairing && r.Code.Text != "" {
		l.Code = string(m.cfg.Seal(puntuale.SealedCode, r.Session.SealPlace(), r.Code.JSON()))
		l.Until = r.Until
	}
	return l
}

// storable replaces characters that databases do not accept.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// stateOf returns the state in a session's last report, or the stored state if there is no report. The caller must hold
// the lock.
func (p *managedSession) stateOf() puntuale.LinkState {
	if p.reports > 0 {
		return p.last.State
	}
	return p.session.LinkOf()
}
