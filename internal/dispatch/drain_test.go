package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// TestDrain checks that a drained session begins no attempts, and that its waiters are informed when every outcome is
// on disk. The session continues after Resume, or by itself at the end of the drain.
func TestDrain(t *testing.T) {
	t.Parallel()
	bubble(t, func(_ *dispatch.Config, _ *memory, n *network) {
		n.send = func(context.Context, puntuale.Prepared) error {
			time.Sleep(3 * time.Second)
			return nil
		}
	}, func(t *testing.T, d *dispatch.Dispatcher, m *memory, _ *network) {
		now := time.Now()
		flying := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(time.Second)
		later := m.add(1, "+392", now.Add(2*time.Second), now.Add(3*time.Second))
		d.Wake(1, now.Add(2*time.Second))
		quiet := d.Drain(1, now.Add(time.Minute))
		synctest.Wait()
		select {
		case <-quiet:
			t.Error("quiet while a message is in flight")
		default:
		}
		after(2500 * time.Millisecond)
		<-quiet
		if s := m.get(flying).state; s != puntuale.Completed {
			t.Errorf("quiet, and what was in flight is %v", s)
		}
		after(30 * time.Second)
		if s := m.get(later[0]); s.state != puntuale.Pending || s.Intent != 0 {
			t.Errorf("while it is drained: %v %d", s.state, s.Intent)
		}
		<-d.Drain(1, now.Add(time.Hour))
		<-d.Drain(9, now.Add(time.Hour)) // no node owns this session
		d.Resume(9)
		d.Resume(1)
		after(5 * time.Second)
		if s := m.get(later[0]).state; s != puntuale.Completed {
			t.Errorf("after its drain: %v", s)
		}
		<-d.Drain(1, time.Now().Add(10*time.Second))
		id := m.add(1, "+393", time.Now())[0]
		after(9 * time.Second)
		if s := m.get(id); s.Intent != 0 {
			t.Errorf("before the end of its drain: %d", s.Intent)
		}
		after(6 * time.Second)
		if s := m.get(id).state; s != puntuale.Completed {
			t.Errorf("after the end of its drain: %v", s)
		}
	})
}

// keeper records the calls by which the dispatcher opens and closes sessions.
type keeper struct {
	mu   sync.Mutex
	told []string
	held map[puntuale.SessionID]func()
}

func (k *keeper) note(what string, args ...any) {
	k.told = append(k.told, fmt.Sprintf(what, args...))
}

func (k *keeper) Own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := fmt.Sprintf("own %d leaving %d node %v", len(sessions), len(leaving), node != 0)
	if n := len(k.told); n == 0 || k.told[n-1] != line {
		k.note("%s", line)
	}
}

func (k *keeper) Release(session puntuale.SessionID, done func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[session] == nil {
		k.note("release")
	}
	k.held[session] = done
}

func (k *keeper) ReleaseAll(context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note("release all")
}

func (k *keeper) seen() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.told)
}

// TestSessionsAreTold checks that the dispatcher informs the keeper about the sessions that it took. The keeper must
// close a session before the session goes to another node, before the node leaves, and when the lease has ended.
func TestSessionsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		for id := range puntuale.SessionID(8) {
			m.session(id+1, 1, 0)
		}
		start := func(k *keeper) *dispatch.Dispatcher {
			cfg := config(m, n)
			cfg.Sessions = k
			d := dispatch.New(cfg)
			if err := d.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return d
		}
		newKeeper := func() *keeper { return &keeper{held: map[puntuale.SessionID]func(){}} }
		a, b := newKeeper(), newKeeper()
		first := start(a)
		after(time.Second)
		if got := a.seen(); len(got) != 1 || got[0] != "own 8 leaving 0 node true" {
			t.Errorf("alone: %q", got)
		}
		second := start(b)
		after(5 * time.Second)
		owned := func() (byNode map[puntuale.NodeID]int) {
			m.mu.Lock()
			defer m.mu.Unlock()
			byNode = map[puntuale.NodeID]int{}
			for _, s := range m.sessions {
				byNode[s.Owner]++
			}
			return byNode
		}
		if byNode := owned(); len(byNode) != 1 || len(a.held) == 0 {
			t.Errorf("before they are closed: %v, %d to be released", byNode, len(a.held))
		}
		a.mu.Lock()
		for _, done := range a.held {
			go done()
		}
		moving := len(a.held)
		a.mu.Unlock()
		after(5 * time.Second)
		if byNode := owned(); len(byNode) != 2 {
			t.Errorf("once they are closed: %v", byNode)
		}
		if got := b.seen(); len(got) == 0 || got[len(got)-1] != fmt.Sprintf("own %d leaving 0 node true", moving) {
			t.Errorf("the new owner of %d: %q", moving, got)
		}
		if err := second.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if got := b.seen(); got[len(got)-1] != "release all" {
			t.Errorf("stopped: %q", got)
		}
		m.mu.Lock()
		clear(m.nodes) // the node's lease has ended
		m.mu.Unlock()
		after(3 * time.Second)
		if got := a.seen(); !slices.Contains(got, "own 0 leaving 0 node false") {
			t.Errorf("fenced: %q", got)
		}
		if err := first.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLinkingIsNotMoved checks that a session stays with its node during a pairing, even if another node joins, because
// a move would end the pairing. The session moves after the pairing, whatever the result.
func TestLinkingIsNotMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		for id := range puntuale.SessionID(8) {
			m.session(id+1, 1, 0)
		}
		link := func(state puntuale.LinkState) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for i := range m.sessions {
				m.sessions[i].Link.State = state
			}
		}
		owners := func() int {
			byNode := map[puntuale.NodeID]bool{}
			for id := range puntuale.SessionID(8) {
				byNode[m.owner(id+1)] = true
			}
			return len(byNode)
		}
		start := func() *dispatch.Dispatcher {
			d := dispatch.New(config(m, n))
			if err := d.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return d
		}
		first := start()
		after(2 * time.Second)
		link(puntuale.LinkPairing)
		second := start()
		after(time.Minute)
		if got := owners(); got != 1 {
			t.Errorf("while they are linked %d nodes have them", got)
		}
		link(puntuale.LinkOnline)
		after(10 * time.Second)
		if got := owners(); got != 2 {
			t.Errorf("once they are online %d nodes have them", got)
		}
		for _, d := range []*dispatch.Dispatcher{second, first} {
			if err := d.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// hanging is a keeper with one session that never closes.
type hanging struct{ keeper }

func (h *hanging) Release(session puntuale.SessionID, done func()) {
	if session != 1 {
		go done()
	}
}

func (h *hanging) ReleaseAll(ctx context.Context) { <-ctx.Done() }

// leaving is a fleet that refuses calls after their deadline.
type leaving struct{ *memory }

func (l leaving) Leave(ctx context.Context, node puntuale.NodeID) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.memory.Leave(ctx, node)
}

// TestStopWithHangingSession uses a session that never closes. When the node stops, this session must not delay the
// other sessions. It becomes free when the node has left.
func TestStopWithHangingSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(cfg *dispatch.Config, m *memory, _ *network) {
		m.session(2, 1, 0)
		cfg.Sessions, cfg.Fleet = &hanging{}, leaving{m}
	}, func(t *testing.T, d *dispatch.Dispatcher, m *memory, _ *network) {
		after(time.Second)
		stopped := make(chan error, 1)
		go func() { stopped <- d.Stop(context.Background()) }()
		after(time.Second)
		if first, second := m.owner(1), m.owner(2); first == 0 || second != 0 {
			t.Errorf("while one hangs: %d, %d", first, second)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Stop: %v", err)
		}
		if owner := m.owner(1); owner != 0 {
			t.Errorf("once it stopped: %d", owner)
		}
	})
}
