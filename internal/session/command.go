package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"puntuale"
)

// keepCommands searches for commands after each wait of [Config].Poll, and after each wakeup.
func (m *Manager) keepCommands() {
	for {
		fired, release := m.cfg.Clock.After(m.cfg.Poll)
		select {
		case <-fired:
		case <-m.wake:
		case <-m.ctx.Done():
			release()
			return
		}
		release()
		m.look()
	}
}

// look starts the open commands of the node's sessions.
func (m *Manager) look() {
	m.mu.Lock()
	node, sessions := m.node, len(m.sessions)
	m.mu.Unlock()
	if node == 0 || sessions == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(m.ctx, callWait)
	defer cancel()
	open, err := m.cfg.Keeper.OpenCommands(ctx, node, m.cfg.Clock.Now())
	if err != nil {
		if m.ctx.Err() == nil {
			m.cfg.Logger.Warn("looking for commands failed", "error", err)
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[puntuale.CommandID]bool, len(open))
	for _, c := range open {
		seen[c.ID] = true
		p := m.sessions[c.Session]
		if _, begun := m.running[c.ID]; begun || p == nil || !p.owned || m.node != node {
			continue // the command has already begun, or the session does not belong to the node
		}
		m.running[c.ID] = true
		m.enqueue(p, func(ctx context.Context) { m.perform(ctx, p, node, c) })
	}
	for id, running := range m.running {
		if !running && !seen[id] {
			delete(m.running, id)
		}
	}
}

// perform executes a command and stores its answer.
func (m *Manager) perform(ctx context.Context, p *managedSession, node puntuale.NodeID, c puntuale.Command) {
	done := m.performed(ctx, p, node, c)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[c.ID] = false // the command must not begin a second time
	if done {
		delete(m.running, c.ID)
	}
}

// performed executes one command. It returns true if the manager need not remember the command, because the command was
// answered or was not taken.
func (m *Manager) performed(ctx context.Context, p *managedSession, node puntuale.NodeID, c puntuale.Command) bool {
	call, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	now := m.cfg.Clock.Now()
	taken, err := m.cfg.Keeper.TakeCommand(call, node, c.ID, now, now.Add(answerKept))
	if err != nil || !taken {
		m.complain(ctx, "taking a command failed", c, err)
		return true
	}
	sessionCtx, cancel := context.WithCancel(ctx) // ends when the session is released
	defer cancel()
	m.mu.Lock()
	p.cut = cancel
	if !p.owned {
		cancel()
	}
	m.mu.Unlock()
	err = puntuale.Recovered(func() error { return m.carryOut(sessionCtx, p, node, c) })
	if err != nil && sessionCtx.Err() != nil {
		err = errMoved
	}
	answer := puntuale.AnswerOf(err)
	if answer.Code == puntuale.CodeInternal {
		m.cfg.Logger.Error("a command failed", "verb", string(c.Verb), "session_id", int64(c.Session), "error", err)
	}
	return m.answer(ctx, sessionCtx, node, c, m.cfg.Seal(puntuale.SealedAnswer, c.Session.SealPlace(), answer.JSON()))
}

// answer stores an answer, and reports whether it is stored. After a failure it tries again. It stops when no caller
// can wait any more, or when the node no longer owns the session.
func (m *Manager) answer(ctx, sessionCtx context.Context, node puntuale.NodeID, c puntuale.Command, sealed []byte) bool {
	for began := m.cfg.Clock.Now(); ; {
		call, cancel := context.WithTimeout(ctx, callWait)
		now := m.cfg.Clock.Now()
		err := m.cfg.Keeper.AnswerCommand(call, node, c.ID, sealed, now, now.Add(answerKept))
		cancel()
		if err == nil {
			m.cfg.Answered(c.Session)
			return true
		}
		m.complain(ctx, "answering a command failed", c, err)
		if now.Sub(began) > answerKept || m.cfg.Clock.Sleep(sessionCtx, writeRetry) != nil {
			return false
		}
	}
}

func (m *Manager) complain(ctx context.Context, problem string, c puntuale.Command, err error) {
	if err != nil && ctx.Err() == nil {
		m.cfg.Logger.Warn(problem, "verb", string(c.Verb), "session_id", int64(c.Session), "error", err) //nolint:sloglint // the argument is one of two constants
	}
}

// Codes of the faults in this file.
const (
	faultCommandServerStopped    puntuale.ReasonCode = "command.server_stopped"
	faultCommandUnknown          puntuale.ReasonCode = "command.unknown"
	faultSessionConnectsItself   puntuale.ReasonCode = "session.connects_itself"
	faultSessionMoving           puntuale.ReasonCode = "session.moving"
	faultSessionNetworkSilent    puntuale.ReasonCode = "session.network_silent"
	faultSessionNotLinkedBecause puntuale.ReasonCode = "session.not_linked_because"
	faultSessionNotTestable      puntuale.ReasonCode = "session.not_testable"
)

// carryOut executes a command. Its error is for the caller that gave the command.
func (m *Manager) carryOut(ctx context.Context, p *managedSession, node puntuale.NodeID, c puntuale.Command) error {
	if c.Taken != 0 && c.Taken != node && !c.Harmless() {
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultCommandServerStopped), RetryAfter: time.Second}
	}
	switch c.Verb {
	case puntuale.CommandPair:
		var order puntuale.PairOrder
		if err := m.read(c, &order); err != nil {
			return err
		}
		return m.pair(ctx, p, order)
	case puntuale.CommandUnlink:
		return m.unlink(ctx, p)
	case puntuale.CommandDrain:
		var order puntuale.DrainOrder
		if err := m.read(c, &order); err != nil {
			return err
		}
		// The node that gave the command computed Until with its own clock. Therefore, only the difference between
		// Until and Created counts.
		err := m.drain(ctx, c.Session, m.cfg.Clock.Now().Add(order.Until.Sub(c.Created)))
		if err != nil {
			m.cfg.Resume(c.Session)
		}
		return err
	case puntuale.CommandResume:
		m.cfg.Resume(c.Session)
		return nil
	case puntuale.CommandTest:
		return m.test(ctx, p)
	case puntuale.CommandLook:
		m.lookAt(p)
		return nil
	case puntuale.CommandTemplates:
		return m.callTemplates(ctx, p)
	case puntuale.CommandReconnect:
		return m.reconnect(ctx, p)
	}
	return puntuale.Conflict(faultCommandUnknown) // a later version gave the command, and this version does not know the verb
}

// read unseals a command's detail and decodes it.
func (m *Manager) read(c puntuale.Command, target any) error {
	plain, err := m.cfg.Open(puntuale.SealedCommand, c.Session.SealPlace(), c.Detail)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, target); err != nil {
		return fmt.Errorf("read a command: %w", err)
	}
	return nil
}

// pair begins to link a session. It waits until the first code, or another result, is stored.
func (m *Manager) pair(ctx context.Context, p *managedSession, order puntuale.PairOrder) error {
	m.mu.Lock()
	state, before, linker, id, open := p.stateOf(), p.reports, p.linker, p.session.ID, p.open
	m.mu.Unlock()
	switch {
	case linker == nil:
		return puntuale.NoLinker()
	case !open:
		return errMoved
	case state == puntuale.LinkLinked || state == puntuale.LinkOnline:
		return puntuale.AlreadyLinked()
	}
	ctx, cancel := m.within(ctx, m.cfg.Begin)
	defer cancel()
	earlier := m.begunAt(p, m.cfg.Clock.Now()) // the new deadline counts from now, even if a pairing was already running
	if err := linker.Pair(ctx, id, order.Method, order.Phone); err != nil {
		m.begunAt(p, earlier)
		return inTime(ctx, err)
	}
	var end puntuale.LinkReport
	err := m.await(ctx, p, func() bool {
		end = p.last
		code := end.Code.Text != "" && end.Code.Method == order.Method
		return p.reports > before && p.stored == p.reports && (end.State != puntuale.LinkPairing || code)
	})
	if err == nil && end.State == puntuale.LinkUnlinked {
		return puntuale.Conflict(faultSessionNotLinkedBecause, end.Detail.Stored())
	}
	return err
}

// begunAt records when the pairing of a session last began. It returns the time that was recorded before.
func (m *Manager) begunAt(p *managedSession, at time.Time) (before time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, p.begun = p.begun, at
	return before
}

// unlink waits until no message of the session is in flight, ends the link, and waits until the new state is stored.
func (m *Manager) unlink(ctx context.Context, p *managedSession) error {
	m.mu.Lock()
	linker, id, open := p.linker, p.session.ID, p.open
	m.mu.Unlock()
	switch {
	case linker == nil:
		return nil // without a linker, no connector can have linked the session
	case !open:
		return errMoved
	}
	if err := m.drain(ctx, id, m.cfg.Clock.Now().Add(m.cfg.Drain+m.cfg.Begin)); err != nil {
		m.cfg.Resume(id)
		return err
	}
	defer m.cfg.Resume(id)
	ctx, cancel := m.within(ctx, m.cfg.Begin)
	defer cancel()
	if err := linker.Unlink(ctx, id); err != nil {
		return inTime(ctx, err)
	}
	m.mu.Lock()
	if !p.open || !p.owned {
		m.mu.Unlock()
		return errMoved
	}
	m.note(p, puntuale.LinkReport{Session: id, State: puntuale.LinkUnlinked})
	count := p.reports
	m.mu.Unlock()
	m.cfg.Changed(id)
	return m.await(ctx, p, func() bool { return p.stored >= count })
}

// test makes a session's connector check again whether the session could send, and waits until the
// result is stored.
func (m *Manager) test(ctx context.Context, p *managedSession) error {
	m.mu.Lock()
	linker, id, open := p.linker, p.session.ID, p.open
	m.mu.Unlock()
	tester, can := linker.(puntuale.Tester)
	switch {
	case !can:
		return puntuale.Conflict(faultSessionNotTestable)
	case !open:
		return errMoved
	}
	ctx, cancel := m.within(ctx, m.cfg.Begin)
	defer cancel()
	if err := tester.Test(ctx, id); err != nil {
		return inTime(ctx, err)
	}
	m.mu.Lock()
	count := p.reports
	m.mu.Unlock()
	return m.await(ctx, p, func() bool { return p.stored >= count })
}

// lookLinker is a linker that learns from its network's reports, which may come to any node.
type lookLinker interface {
	Look(session puntuale.SessionID)
}

// lookAt makes a session's connector read what its network reported about the session.
func (m *Manager) lookAt(p *managedSession) {
	m.mu.Lock()
	linker, id, open := p.linker, p.session.ID, p.open
	m.mu.Unlock()
	if can, ok := linker.(lookLinker); ok && open { // a session that opens later reads the reports then
		can.Look(id)
	}
}

// templateCaller is a linker whose network approves templates.
type templateCaller interface {
	// CallTemplates makes the calls of the session's open requests about templates.
	CallTemplates(ctx context.Context, session puntuale.SessionID) error
}

// callTemplates makes the calls of the session's open requests about templates.
func (m *Manager) callTemplates(ctx context.Context, p *managedSession) error {
	m.mu.Lock()
	linker, id, open := p.linker, p.session.ID, p.open
	m.mu.Unlock()
	caller, can := linker.(templateCaller)
	switch {
	case !can:
		return puntuale.Conflict(faultCommandUnknown)
	case !open:
		return errMoved
	}
	ctx, cancel := m.within(ctx, m.cfg.Begin)
	defer cancel()
	return inTime(ctx, caller.CallTemplates(ctx, id))
}

// reconnect makes a session's connector connect the session immediately, and waits until the result is stored.
func (m *Manager) reconnect(ctx context.Context, p *managedSession) error {
	m.mu.Lock()
	linker, id, open := p.linker, p.session.ID, p.open
	m.mu.Unlock()
	reconnector, can := linker.(puntuale.Reconnector)
	switch {
	case !can:
		return puntuale.Conflict(faultSessionConnectsItself)
	case !open:
		return errMoved
	}
	ctx, cancel := m.within(ctx, m.cfg.Begin)
	defer cancel()
	if err := reconnector.Reconnect(ctx, id); err != nil {
		return inTime(ctx, err)
	}
	m.mu.Lock()
	count := p.reports
	m.mu.Unlock()
	return m.await(ctx, p, func() bool { return p.stored >= count })
}

// drain makes a session begin no messages until the time in the argument end. It waits until none of the session's
// messages is in flight.
func (m *Manager) drain(ctx context.Context, id puntuale.SessionID, end time.Time) error {
	quiet := m.cfg.DrainSession(id, end)
	ctx, cancel := m.within(ctx, m.cfg.Drain)
	defer cancel()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(puntuale.FaultSessionSending), RetryAfter: 2 * time.Second}
	}
}

// await waits until condition returns true for a session. It calls condition while it holds the lock.
func (m *Manager) await(ctx context.Context, p *managedSession, condition func() bool) error {
	for {
		m.mu.Lock()
		done, released, changed := condition(), !p.owned, p.changed
		m.mu.Unlock()
		switch {
		case done:
			return nil
		case released:
			return errMoved
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errSlow
		}
	}
}

// inTime returns errSlow if a call to a connector ended because of its deadline, and err otherwise.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errSlow
	}
	return err
}

// errSlow means that the network did not answer in time.
var errSlow = &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultSessionNetworkSilent), RetryAfter: 2 * time.Second}

// errMoved means that another node owns the session now.
var errMoved = &puntuale.Error{Code: puntuale.CodeBusy, Reason: puntuale.Because(faultSessionMoving), RetryAfter: time.Second}
