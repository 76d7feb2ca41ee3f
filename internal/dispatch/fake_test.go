package dispatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
)

// memory is a Queue and a Fleet in memory, for tests of scheduling only. Other tests use the real store.
type memory struct {
	mu          sync.Mutex
	rows        map[puntuale.MessageID]*row
	contents    map[puntuale.RunRef]runContent
	permissions map[puntuale.ClientID]puntuale.SendPermission
	sessions    []puntuale.Session
	nodes       map[puntuale.NodeID]time.Time
	lastNode    puntuale.NodeID
	lastID      puntuale.MessageID
	claims      []puntuale.Claim // the claims that the dispatcher requested
	reads       int
	seen        int                       // number of rows that reads returned
	scanned     []int                     // for each call of Retrying: the largest number of rows that the call was allowed to read
	fails       func(method string) error // returns the error of a call, or nil
	commit      time.Duration             // how long a write takes
}

type row struct {
	puntuale.DueMessage
	state  puntuale.State
	reason puntuale.Reason
	done   time.Time
	credit bool // true: a credit is reserved for the message
}

func newMemory() *memory {
	return &memory{
		rows:        map[puntuale.MessageID]*row{},
		contents:    map[puntuale.RunRef]runContent{},
		permissions: map[puntuale.ClientID]puntuale.SendPermission{},
		nodes:       map[puntuale.NodeID]time.Time{},
		lastID:      1000,
	}
}

// enter locks the memory. A write first sleeps as long as the field commit says. enter returns the error that the test
// set with fails.
func (m *memory) enter(method string, write bool) error {
	if write && m.commit > 0 {
		time.Sleep(m.commit)
	}
	m.mu.Lock()
	if m.fails != nil {
		return m.fails(method)
	}
	return nil
}

func (m *memory) session(id puntuale.SessionID, client puntuale.ClientID, perMin int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = append(m.sessions, puntuale.Session{ID: id, Client: client, Type: puntuale.Socket, Sandbox: true, Pace: puntuale.Pace{PerMinute: perMin}})
}

// add schedules messages of one run to a phone on a session. Each message is valid for a day.
func (m *memory) add(session puntuale.SessionID, phone string, due ...time.Time) []puntuale.MessageID {
	return m.addWith(session, phone, nil, 24*time.Hour, due...)
}

func (m *memory) addWith(session puntuale.SessionID, phone string, w *puntuale.Window, valid time.Duration, due ...time.Time) (ids []puntuale.MessageID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.sessions, func(s puntuale.Session) bool { return s.ID == session })
	client := m.sessions[at].Client
	run := puntuale.RunID(m.lastID + 1)
	content := runContent{zone: "Europe/Rome"}
	for step, t := range due {
		m.lastID++
		ids = append(ids, m.lastID)
		m.rows[m.lastID] = &row{DueMessage: puntuale.DueMessage{
			Client: client, ID: m.lastID, Session: session, Run: run, Step: step, Phone: phone,
			Due: t, Next: t, ValidUntil: t.Add(valid),
		}}
		content.steps = append(content.steps, puntuale.FrozenStep{
			Step: step, Window: w, Content: puntuale.Content{Text: fmt.Sprintf("%d", m.lastID)},
		})
	}
	m.contents[puntuale.RunRef{Client: client, ID: run}] = content
	return ids
}

func (m *memory) get(id puntuale.MessageID) row {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.rows[id]
}

// reserved reports whether a credit is reserved for the message.
func (m *memory) reserved(id puntuale.MessageID) bool { return m.get(id).credit }

func (m *memory) change(id puntuale.MessageID, f func(*row)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.rows[id])
}

func (m *memory) setPermission(client puntuale.ClientID, s puntuale.SendPermission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.permissions[client] = s
}

func (m *memory) fail(f func(method string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = f
}

func behind(x *puntuale.DueMessage, p puntuale.QueueCursor) bool {
	return x.Next.After(p.Next) || x.Next.Equal(p.Next) && x.ID > p.ID
}

func (m *memory) Due(_ context.Context, from []puntuale.QueueCursor, horizon time.Time, limit int) (due []puntuale.DueMessage, err error) {
	err = m.enter("Due", false)
	defer m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	m.reads++
	places, queues := map[puntuale.SessionID]puntuale.QueueCursor{}, map[puntuale.SessionID][]*row{}
	for _, p := range from {
		places[p.Session] = p
	}
	for _, r := range m.rows {
		if r.state != puntuale.Pending || r.Next.After(horizon) {
			continue
		}
		if p, asked := places[r.Session]; asked && behind(&r.DueMessage, p) {
			queues[r.Session] = append(queues[r.Session], r)
		}
	}
	for _, p := range from {
		queue := queues[p.Session]
		slices.SortFunc(queue, func(a, b *row) int { return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.ID, b.ID)) })
		for _, r := range queue[:min(limit, len(queue))] {
			due = append(due, r.DueMessage)
		}
	}
	m.seen += len(due)
	return due, nil
}

func (m *memory) Expiring(_ context.Context, session puntuale.SessionID, end time.Time, limit int) (ending []puntuale.DueMessage, err error) {
	err = m.enter("Expiring", false)
	defer m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, r := range m.rows {
		if r.Session == session && r.state == puntuale.Pending && r.Intent == 0 && !r.Next.After(end) && !r.ValidUntil.After(end) {
			ending = append(ending, r.DueMessage)
		}
	}
	slices.SortFunc(ending, func(a, b puntuale.DueMessage) int { return a.ValidUntil.Compare(b.ValidUntil) })
	return ending[:min(limit, len(ending))], nil
}

func (m *memory) Retrying(_ context.Context, sessions []puntuale.SessionID, since, end time.Time, limit int) (
	tried []puntuale.DueMessage, crowded []puntuale.SessionID, err error,
) {
	err = m.enter("Retrying", false)
	defer m.mu.Unlock()
	count := map[puntuale.SessionID]int{}
	for _, r := range slices.SortedFunc(maps.Values(m.rows), func(a, b *row) int { return a.Next.Compare(b.Next) }) {
		if r.state != puntuale.Pending || !slices.Contains(sessions, r.Session) || !r.Next.After(since) || r.Next.After(end) {
			continue
		}
		if count[r.Session]++; count[r.Session] == limit {
			crowded = append(crowded, r.Session)
		}
		if count[r.Session] <= limit && r.Intent == 0 && r.Attempt > 0 && r.IntentAt.After(since) {
			tried = append(tried, r.DueMessage)
		}
	}
	m.scanned = append(m.scanned, len(sessions)*limit)
	return tried, crowded, err
}

func (m *memory) Contents(_ context.Context, steps []puntuale.StepRef) (map[puntuale.StepRef]puntuale.StepContent, error) {
	err := m.enter("Contents", false)
	defer m.mu.Unlock()
	found := map[puntuale.StepRef]puntuale.StepContent{}
	for _, r := range steps {
		if c := m.contents[r.RunRef]; r.Step < len(c.steps) {
			found[r] = puntuale.StepContent{Zone: c.zone, Content: c.steps[r.Step].Content, Window: c.steps[r.Step].Window}
		}
	}
	return found, err
}

func (m *memory) SendPermissions(_ context.Context, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.SendPermission, error) {
	err := m.enter("SendPermissions", false)
	defer m.mu.Unlock()
	found := map[puntuale.ClientID]puntuale.SendPermission{}
	for _, c := range clients {
		found[c] = m.permissions[c]
	}
	return found, err
}

func (m *memory) Claim(_ context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	err := m.enter("Claim", true)
	defer m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !time.Now().Before(m.nodes[c.Node]) {
		return nil, puntuale.ErrFenced
	}
	m.claims = append(m.claims, c)
	granted := make([]puntuale.ClaimAnswer, len(c.Messages))
	for i, item := range c.Messages {
		r := m.rows[item.ID]
		if r == nil || r.state != puntuale.Pending || r.Intent != item.Intent || r.Next.After(c.Now) || !r.ValidUntil.After(c.Now) {
			continue
		}
		if item.Intent == 0 && m.permissions[item.Client].WaitReason(c.Now) != "" {
			granted[i] = puntuale.ClaimHeld
			continue
		}
		if item.Intent > 0 {
			r.Repeats++
		} else {
			r.IntentAt = c.Now
		}
		r.Intent = c.Token
		r.Attempt++
		r.credit = true
		granted[i] = puntuale.ClaimGranted
	}
	return granted, nil
}

func (m *memory) Record(_ context.Context, now time.Time, results []puntuale.Result) ([]bool, error) {
	err := m.enter("Record", true)
	defer m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	applied := make([]bool, len(results))
	for i, res := range results {
		r := m.rows[res.ID]
		if r.state != puntuale.Pending || r.Intent != res.Token {
			continue
		}
		applied[i] = true
		r.reason = res.Outcome.Reason
		switch res.Outcome.Verdict {
		case puntuale.Sent:
			r.state, r.Intent, r.done = puntuale.Completed, -1, now
		case puntuale.Refused:
			r.state, r.Intent, r.done, r.credit = puntuale.Failed, -1, now, false
		case puntuale.Retry:
			r.Intent, r.Next, r.credit = 0, res.Outcome.Next, false
		case puntuale.Uncertain:
			r.Next = res.Outcome.Next
		}
	}
	return applied, nil
}

func (m *memory) Settle(_ context.Context, _ puntuale.NodeID, now time.Time, all []puntuale.Settlement) error {
	err := m.enter("Settle", true)
	defer m.mu.Unlock()
	if err != nil {
		return err
	}
	for _, s := range all {
		r := m.rows[s.ID]
		if r.state != puntuale.Pending || r.Intent != s.Intent {
			continue
		}
		r.reason = s.Reason
		if s.State == puntuale.Pending {
			r.Next = s.Next
		} else {
			r.state, r.Intent, r.done = s.State, -1, now
		}
	}
	return nil
}

func (m *memory) Join(_ context.Context, lease time.Duration) (puntuale.NodeID, error) {
	err := m.enter("Join", false)
	defer m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	m.lastNode++
	m.nodes[m.lastNode] = time.Now().Add(lease)
	return m.lastNode, nil
}

func (m *memory) Beat(_ context.Context, node puntuale.NodeID, lease time.Duration) error {
	err := m.enter("Beat", false)
	defer m.mu.Unlock()
	if err != nil {
		return err
	}
	if !time.Now().Before(m.nodes[node]) {
		return puntuale.ErrFenced
	}
	m.nodes[node] = time.Now().Add(lease)
	return nil
}

func (m *memory) Reap(context.Context) (freed int, err error) {
	err = m.enter("Reap", false)
	defer m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for n, leaseEnd := range m.nodes {
		if !time.Now().Before(leaseEnd) {
			freed += m.free(n)
		}
	}
	return freed, nil
}

func (m *memory) free(n puntuale.NodeID) (freed int) {
	delete(m.nodes, n)
	for i := range m.sessions {
		if m.sessions[i].Owner == n {
			m.sessions[i].Owner = 0
			freed++
		}
	}
	return freed
}

func (m *memory) Roster(_ context.Context, node puntuale.NodeID) (nodes []puntuale.NodeID, sessions []puntuale.Session, err error) {
	err = m.enter("Roster", false)
	defer m.mu.Unlock()
	for n := range m.nodes {
		nodes = append(nodes, n)
	}
	for _, s := range m.sessions {
		if s.Owner == 0 || s.Owner == node {
			sessions = append(sessions, s)
		}
	}
	return nodes, sessions, err
}

func (m *memory) Assign(_ context.Context, from, to puntuale.NodeID, ids []puntuale.SessionID) (moved []puntuale.SessionID, err error) {
	err = m.enter("Assign", false)
	defer m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i := range m.sessions {
		if s := &m.sessions[i]; s.Owner == from && slices.Contains(ids, s.ID) {
			s.Owner = to
			moved = append(moved, s.ID)
		}
	}
	return moved, nil
}

func (m *memory) Leave(_ context.Context, node puntuale.NodeID) error {
	err := m.enter("Leave", false)
	defer m.mu.Unlock()
	m.free(node)
	return err
}

func (m *memory) owner(id puntuale.SessionID) puntuale.NodeID {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		if s.ID == id {
			return s.Owner
		}
	}
	return 0
}

// network is a connector whose behaviour the test sets.
type network struct {
	capabilities puntuale.Capabilities
	prepare      func(context.Context, puntuale.Envelope) error // nil: Prepare succeeds immediately
	send         func(context.Context, puntuale.Prepared) error // nil: Send succeeds immediately
	online       func(puntuale.SessionID) bool                  // nil: all sessions are always online
	mu           sync.Mutex
	seen         []sighting
	flying       map[puntuale.SessionID]int
	highest      map[puntuale.SessionID]int
}

type sighting struct {
	puntuale.Envelope
	at time.Time
}

func newNetwork() *network {
	return &network{
		capabilities: puntuale.Capabilities{Name: "test", Slots: 1000, SendTimeout: 10 * time.Second, Recovery: puntuale.RecoverSameID},
		flying:       map[puntuale.SessionID]int{}, highest: map[puntuale.SessionID]int{},
	}
}

func (n *network) Capabilities() puntuale.Capabilities { return n.capabilities }

func (n *network) Online(s puntuale.SessionID) bool { return n.online == nil || n.online(s) }

func (n *network) Prepare(ctx context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	if n.prepare != nil {
		if err := n.prepare(ctx, e); err != nil {
			return puntuale.Prepared{}, err
		}
	}
	return puntuale.Prepared{Envelope: e}, nil
}

func (n *network) Send(ctx context.Context, p puntuale.Prepared) (puntuale.Acceptance, error) {
	n.mu.Lock()
	n.seen = append(n.seen, sighting{p.Envelope, time.Now()})
	n.flying[p.Session]++
	n.highest[p.Session] = max(n.highest[p.Session], n.flying[p.Session])
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.flying[p.Session]--
		n.mu.Unlock()
	}()
	if n.send != nil {
		return puntuale.Acceptance{}, n.send(ctx, p)
	}
	return puntuale.Acceptance{}, nil
}

func (n *network) sightings() []sighting {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.seen)
}

// of returns the times of all sends of a message.
func (n *network) of(id puntuale.MessageID) (at []time.Time) {
	for _, s := range n.sightings() {
		if s.Message == id {
			at = append(at, s.at)
		}
	}
	return at
}

// order returns the ids of the messages in the order in which they were sent.
func (n *network) order() (ids []puntuale.MessageID) {
	for _, s := range n.sightings() {
		ids = append(ids, s.Message)
	}
	return ids
}

// bubble runs a test with a dispatcher, a memory and a network, in the fake time of a synctest bubble.
func bubble(t *testing.T, setup func(*dispatch.Config, *memory, *network), run func(*testing.T, *dispatch.Dispatcher, *memory, *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		m.session(1, 1, 0)
		cfg := config(m, n)
		if setup != nil {
			setup(&cfg, m, n)
		}
		d := dispatch.New(cfg)
		if err := d.Start(t.Context()); err != nil {
			t.Fatalf("Start: %v", err)
		}
		run(t, d, m, n)
		if err := d.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
}

func config(m *memory, n *network) dispatch.Config {
	return dispatch.Config{
		Queue: m, Fleet: m, Clock: clock.System(), Logger: quiet(),
		Connector: func(puntuale.Session) puntuale.Connector { return n },
	}
}

// after sleeps for d, and then waits until all goroutines of the bubble are idle.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var errAway = puntuale.Unavailable(errors.New("away"))

// runContent is the content of one run.
type runContent struct {
	zone  string
	steps []puntuale.FrozenStep
}
