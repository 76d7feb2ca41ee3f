package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is the configuration of a manager. Answered, Clock, Logger, Poll, Drain and Begin are optional.
type Config struct {
	Keeper Store
	// Linker returns the connector that links the session, or nil if there is none. It must read only memory.
	Linker func(puntuale.Session) puntuale.Linker

	// DrainSession stops a session from beginning messages until a given time. The returned channel is closed when no
	// message of the session is in flight. Resume ends the drain earlier.
	DrainSession func(puntuale.SessionID, time.Time) <-chan struct{}
	Resume       func(puntuale.SessionID)
	// Changed informs the dispatcher that a session may have gone online or offline.
	Changed func(puntuale.SessionID)
	// Answered is called after a command of the session was answered. It may be nil if no caller in this process waits
	// for answers.
	Answered func(puntuale.SessionID)

	// Seal and Open encrypt and decrypt stored data. The argument purpose says what the data are for. The argument
	// place says to which row the data belong.
	Seal func(purpose, place string, plain []byte) []byte
	Open func(purpose, place string, sealed []byte) ([]byte, error)

	Clock  clock.Clock   // nil: the system's clock
	Logger *slog.Logger  // nil: slog.Default
	Poll   time.Duration // time between two searches for commands; default 1 s
	Drain  time.Duration // how long an unlink or a drain waits for messages in flight; default 15 s
	Begin  time.Duration // how long a pairing waits for its first code, and an unlink for the network; default 15 s
}

const (
	answerKept = time.Minute      // how long a caller can read an answer, and how long a new owner can find an unanswered command
	callWait   = 15 * time.Second // the longest time for one call of the store
	closeWait  = 5 * time.Second  // the longest time in which a connector must close a session
	maxWritten = 500              // the most links that one transaction stores
	writeRetry = time.Second
)

// Manager manages the sessions that this node owns. It is safe for concurrent use.
type Manager struct {
	cfg   Config
	wake  chan struct{} // starts a search for commands
	dirty chan struct{} // starts to store links

	mu       sync.Mutex
	node     puntuale.NodeID // 0: the node owns nothing
	sessions map[puntuale.SessionID]*managedSession
	unsaved  map[puntuale.SessionID]*managedSession // sessions with a report that is not stored yet
	running  map[puntuale.CommandID]bool            // commands that have begun: true while they run, false if they ended and the answer could not be stored
	idle     chan struct{}                          // closed when no session has work; nil if no goroutine waits for this
	busy     int                                    // number of sessions that have work

	ctx    context.Context // context of all work
	cancel context.CancelFunc
	wg     sync.WaitGroup
	start  sync.Once
}

// New returns a manager. It searches for commands and stores links only after Start.
func New(cfg Config) *Manager {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Answered == nil {
		cfg.Answered = func(puntuale.SessionID) {}
	}
	for setting, want := range map[*time.Duration]time.Duration{&cfg.Poll: time.Second, &cfg.Drain: 15 * time.Second, &cfg.Begin: 15 * time.Second} {
		if *setting <= 0 {
			*setting = want
		}
	}
	m := &Manager{
		cfg: cfg, wake: make(chan struct{}, 1), dirty: make(chan struct{}, 1),
		sessions: map[puntuale.SessionID]*managedSession{}, unsaved: map[puntuale.SessionID]*managedSession{}, running: map[puntuale.CommandID]bool{},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Start begins to search for commands and to store links. A second call does nothing.
func (m *Manager) Start() {
	m.start.Do(func() {
		m.wg.Go(m.keepLinks)
		m.wg.Go(m.keepCommands)
	})
}

// Stop closes all sessions and ends all goroutines of the manager. When ctx ends, it aborts the calls that still run.
func (m *Manager) Stop(ctx context.Context) {
	m.ReleaseAll(ctx)
	m.cancel()
	m.start.Do(func() {}) // a stopped manager can no longer be started
	m.wg.Wait()
}

// State is a type of sessions and a link state.
type State struct {
	Type    puntuale.ConnectionType
	State   string // name of the state in the API
	Sandbox bool
}

// States counts the sessions that the node owns, by type and state.
func (m *Manager) States() map[State]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[State]int{}
	for _, p := range m.sessions {
		if p.owned {
			l := puntuale.Link{State: p.session.LinkOf(), Condition: p.session.Link.Condition}
			if p.reports > 0 {
				l = puntuale.Link{State: p.last.State, Condition: p.last.Condition}
			}
			all[State{p.session.Type, l.Word(), p.session.Sandbox}]++
		}
	}
	return all
}

// Wake informs the manager that there may be a new command. It never blocks.
func (m *Manager) Wake(puntuale.SessionID) { ring(m.wake) }

// Own sets the sessions that the node owns from now on. The manager opens the new ones, and closes those that are no
// longer in the list. Sessions in the argument leaving do not change. Node 0 owns nothing. Own never blocks. When it
// returns, all sessions with a linker are open, except sessions whose work still runs.
func (m *Manager) Own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	for _, p := range m.setOwned(node, sessions, leaving) {
		m.open(p)
		m.mu.Lock()
		m.begin(p)
		m.mu.Unlock()
	}
}

// setOwned takes and releases sessions. It returns the sessions that the caller must open immediately. Work for these
// sessions waits until they are open.
func (m *Manager) setOwned(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool) (fresh []*managedSession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node = node
	owned := make(map[puntuale.SessionID]bool, len(sessions))
	for i := range sessions {
		s := &sessions[i]
		owned[s.ID] = true
		if !leaving[s.ID] && m.take(s) {
			fresh = append(fresh, m.sessions[s.ID])
		} else {
			m.paced(s)
		}
	}
	for id, p := range m.sessions {
		if p.owned && !owned[id] {
			m.letGo(p, nil)
		}
	}
	return fresh
}

// Release closes a session, and calls done when another node may open it. It never blocks.
func (m *Manager) Release(session puntuale.SessionID, done func()) {
	m.mu.Lock()
	p := m.sessions[session]
	if p == nil {
		m.mu.Unlock()
		done()
		return
	}
	m.letGo(p, done)
	m.mu.Unlock()
}

// ReleaseAll closes all sessions, and returns when they are closed. When ctx ends, it aborts calls to connectors.
func (m *Manager) ReleaseAll(ctx context.Context) {
	m.mu.Lock()
	for _, p := range m.sessions {
		if p.owned {
			m.letGo(p, nil)
		}
	}
	if m.idle == nil {
		m.idle = make(chan struct{})
	}
	idle := m.idle
	m.notifyIdle()
	m.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		m.cancel()
	}
}

// notifyIdle wakes the goroutines that wait until no session has work. The caller must hold the lock.
func (m *Manager) notifyIdle() {
	if m.idle != nil && m.busy == 0 {
		close(m.idle)
		m.idle = nil
	}
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
