package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is what a manager needs. All but the last five must be set.
type Config struct {
	Keeper puntuale.LinkStore
	// Linker returns the connector that links a session, nil if there is none. It answers from memory.
	Linker func(puntuale.Session) puntuale.Linker

	// Rest makes the dispatcher begin nothing new for a session until a moment. The channel is closed once none of its
	// messages is in flight. Resume ends that before its time.
	Rest   func(puntuale.SessionID, time.Time) <-chan struct{}
	Resume func(puntuale.SessionID)
	// Changed tells the dispatcher that a session may have come online, or gone.
	Changed func(puntuale.SessionID)
	// Answered tells that a command of the session was answered. nil: nobody waits in this process.
	Answered func(puntuale.SessionID)

	// Seal and Open protect data. Purpose and place name what the data are for and where they belong.
	Seal func(purpose, place string, plain []byte) []byte
	Open func(purpose, place string, sealed []byte) ([]byte, error)

	Clock  clock.Clock   // nil: the system's
	Logger *slog.Logger  // nil: slog.Default
	Poll   time.Duration // between looks for commands; default 1 s
	Drain  time.Duration // how long an unlink or a drain waits for messages in flight; default 15 s
	Begin  time.Duration // for the first code of a pairing, and for the network when a session is unlinked; default 15 s
}

const (
	answerKept = time.Minute      // how long the giver can read an answer, and a successor can find an unanswered command
	callWait   = 15 * time.Second // for one call of the store
	closeWait  = 5 * time.Second  // for a connector to close a session
	writeMost  = 500              // links a transaction
	writeRetry = time.Second
)

// Manager looks after the sessions that this node owns. Its methods may be called by many goroutines at once.
type Manager struct {
	cfg   Config
	wake  chan struct{} // look for commands
	dirty chan struct{} // something is to be stored

	mu       sync.Mutex
	node     puntuale.NodeID // 0: none, nothing is the node's
	sessions map[puntuale.SessionID]*managedSession
	unsaved  map[puntuale.SessionID]*managedSession // with reports that are not on disk
	running  map[puntuale.CommandID]bool            // those begun: true while carried out, false if the answer could not be stored
	idle     chan struct{}                          // closed once no place has work; nil while nobody waits
	busy     int                                    // sessions with work

	ctx    context.Context // of everything
	cancel context.CancelFunc
	wg     sync.WaitGroup
	start  sync.Once
}

// New prepares a manager; it looks for commands and stores links from Start on.
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
	for of, want := range map[*time.Duration]time.Duration{&cfg.Poll: time.Second, &cfg.Drain: 15 * time.Second, &cfg.Begin: 15 * time.Second} {
		if *of <= 0 {
			*of = want
		}
	}
	m := &Manager{
		cfg: cfg, wake: make(chan struct{}, 1), dirty: make(chan struct{}, 1),
		sessions: map[puntuale.SessionID]*managedSession{}, unsaved: map[puntuale.SessionID]*managedSession{}, running: map[puntuale.CommandID]bool{},
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Start begins to look for commands and to store links; a second call does nothing.
func (m *Manager) Start() {
	m.start.Do(func() {
		m.wg.Go(m.keepLinks)
		m.wg.Go(m.keepCommands)
	})
}

// Stop ends everything that is left, cutting off what takes longer than ctx. Sessions are closed before, by ReleaseAll.
func (m *Manager) Stop(ctx context.Context) {
	m.ReleaseAll(ctx)
	m.cancel()
	m.start.Do(func() {}) // one that never started stays down
	m.wg.Wait()
}

// State names sessions of a type that are in a state.
type State struct {
	Type    puntuale.ConnectionType
	State   string // as callers are told it
	Sandbox bool
}

// States counts the sessions that the node owns.
func (m *Manager) States() map[State]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[State]int{}
	for _, p := range m.sessions {
		if p.owned {
			l := puntuale.Link{State: p.session.LinkOf(), Condition: p.session.Link.Condition}
			if p.told > 0 {
				l = puntuale.Link{State: p.last.State, Condition: p.last.Condition}
			}
			all[State{p.session.Type, l.Word(), p.session.Sandbox}]++
		}
	}
	return all
}

// Wake says that a command may have been given. It never blocks.
func (m *Manager) Wake(puntuale.SessionID) { ring(m.wake) }

// Own says that the node owns exactly these sessions from now on. It opens new ones and closes others. Sessions in
// leaving stay as they are. Node 0 owns nothing. It never blocks. When it returns, the sessions are open, except those
// that still have work under way.
func (m *Manager) Own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	for _, p := range m.own(node, sessions, leaving) {
		m.open(p)
		m.mu.Lock()
		m.begin(p)
		m.mu.Unlock()
	}
}

// own takes and releases sessions. It returns those to open at once, and holds back their work until they are open.
func (m *Manager) own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool) (fresh []*managedSession) {
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

// Release closes a session, and calls done once another node may open it. It never blocks.
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

// ReleaseAll closes all sessions. It returns once they are closed, or ctx ends; then calls to connectors are cut off.
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
	m.rested()
	m.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		m.cancel()
	}
}

// rested wakes the goroutines that wait until no place has work. The caller holds the lock.
func (m *Manager) rested() {
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
