package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/session"
	"puntuale/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is a connector. The test sets the result of each call.
type network struct {
	mu     sync.Mutex
	report func(puntuale.LinkReport)
	calls  []string
	opened map[puntuale.SessionID]puntuale.Session

	pairs   func(context.Context, puntuale.SessionID) error // result of Pair; nil: no error
	unlinks func(context.Context) error
}

func (n *network) note(what string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, fmt.Sprintf(what, args...))
}

// called returns the calls until now, without the ids of sessions.
func (n *network) called() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.calls)
}

func (n *network) Open(s puntuale.Session) {
	n.note("open %v", s.Link.State)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened[s.ID] = s
}

func (n *network) Close(context.Context, puntuale.SessionID) { n.note("close") }

func (n *network) Pair(ctx context.Context, id puntuale.SessionID, method puntuale.PairMethod, phone string) error {
	n.note("pair %s %s", method, phone)
	if n.pairs != nil {
		return n.pairs(ctx, id)
	}
	return nil
}

func (n *network) Unlink(ctx context.Context, _ puntuale.SessionID) error {
	n.note("unlink")
	if n.unlinks != nil {
		return n.unlinks(ctx)
	}
	return nil
}

// lines is a fake dispatcher. It records which sessions must not send now.
type lines struct {
	mu      sync.Mutex
	quiet   chan struct{} // the channel that the method rest returns
	until   time.Time     // until when the session of the last drain must begin no messages
	resting bool
	changed int
	resumed int
}

func (l *lines) rest(_ puntuale.SessionID, deadline time.Time) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = deadline
	l.resting = true
	return l.quiet
}

func (l *lines) resume(puntuale.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resting = false
	l.resumed++
}

func (l *lines) seen() (resting bool, resumed, changed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resting, l.resumed, l.changed
}

// world is a store with one client. The nodes of a test own the client's default session.
type world struct {
	t *testing.T
	*storetest.World
	client *storetest.Client
	vault  *auth.Vault
	log    *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func databases(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, World: storetest.NewWorld(t, driver(t)), log: &lockedBuffer{}}
			w.client = w.Client(puntuale.AccountFull)
			var err error
			if w.vault, err = auth.NewVault(make([]byte, auth.DataKeySize)); err != nil {
				t.Fatal(err)
			}
			test(t, w)
		})
	}
}

// node is a fake process: it has a manager, a network and a dispatcher.
type node struct {
	*session.Manager
	w     *world
	id    puntuale.NodeID
	net   *network
	lines *lines
}

// newNode joins the fleet and starts a manager. The functions in change may change the manager's configuration.
func (w *world) newNode(change ...func(*session.Config)) *node {
	w.t.Helper()
	n := &node{w: w, id: w.MustJoin(), net: &network{opened: map[puntuale.SessionID]puntuale.Session{}}, lines: &lines{quiet: make(chan struct{})}}
	close(n.lines.quiet)
	cfg := session.Config{
		Keeper: w.Store, Linker: func(puntuale.Session) puntuale.Linker { return n.net },
		DrainSession: n.lines.rest, Resume: n.lines.resume,
		Changed: func(puntuale.SessionID) {
			n.lines.mu.Lock()
			defer n.lines.mu.Unlock()
			n.lines.changed++
		},
		Seal: w.vault.Seal, Open: w.vault.Open, Clock: w.DB.Clock,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	n.Manager = session.New(cfg)
	n.net.report = n.Report
	n.Start()
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		n.Stop(ctx)
	})
	return n
}

// owns makes the node the owner of the client's session. The argument from is the previous owner; 0: none.
func (n *node) owns(from puntuale.NodeID) {
	n.w.t.Helper()
	moved, err := n.w.Assign(context.Background(), from, n.id, []puntuale.SessionID{n.w.client.Session})
	if err != nil || len(moved) != 1 {
		n.w.t.Fatalf("assign: %v, %v", moved, err)
	}
	n.Own(n.id, []puntuale.Session{n.w.session()}, nil)
}

func (w *world) session() puntuale.Session {
	w.t.Helper()
	s, err := w.client.Tenant.Session(context.Background(), w.client.Session)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// code returns the stored pairing code, unsealed, or "" if there is none.
func (w *world) code() string {
	w.t.Helper()
	s := w.session()
	if s.Link.Code == "" {
		return ""
	}
	plain, err := w.vault.Open(puntuale.SealedCode, s.ID.SealPlace(), []byte(s.Link.Code))
	if err != nil {
		w.t.Fatal(err)
	}
	var code puntuale.PairingCode
	if err := json.Unmarshal(plain, &code); err != nil {
		w.t.Fatal(err)
	}
	return code.Text
}

// give stores a command and wakes the node's manager.
func (w *world) give(n *node, verb puntuale.CommandVerb, detail []byte) puntuale.CommandID {
	w.t.Helper()
	now := w.DB.Clock.Now()
	id, err := w.client.GiveCommand(context.Background(), puntuale.Command{
		Session: w.client.Session, Verb: verb, Created: now, Expires: now.Add(30 * time.Second),
		Detail: w.vault.Seal(puntuale.SealedCommand, w.client.Session.SealPlace(), detail),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if n != nil {
		n.Wake(w.client.Session)
	}
	return id
}

var byQR = puntuale.PairOrder{Method: puntuale.PairQR}.JSON()

// pairing reports a pairing code for the client's session.
func (n *node) pairing(text string) {
	n.Report(puntuale.LinkReport{
		Session: n.w.client.Session, State: puntuale.LinkPairing, Code: puntuale.PairingCode{Method: puntuale.PairQR, Text: text},
		Until: n.w.DB.Clock.Now().Add(20 * time.Second),
	})
}

func (n *node) tells(state puntuale.LinkState, number, detail string) {
	n.Report(puntuale.LinkReport{Session: n.w.client.Session, State: state, Number: number, Detail: puntuale.Quoted(detail)})
}

// answer waits for the answer to a command.
func (w *world) answer(id puntuale.CommandID) error {
	w.t.Helper()
	var sealed []byte
	w.eventually("an answer", func() (err error) {
		if sealed, err = w.client.CommandAnswer(context.Background(), id, w.DB.Clock.Now()); err == nil && sealed == nil {
			err = fmt.Errorf("none yet")
		}
		return err
	})
	plain, err := w.vault.Open(puntuale.SealedAnswer, w.client.Session.SealPlace(), sealed)
	if err != nil {
		w.t.Fatal(err)
	}
	var a puntuale.CommandAnswer
	if err := json.Unmarshal(plain, &a); err != nil {
		w.t.Fatal(err)
	}
	return a.Err()
}

// eventually calls condition repeatedly, until it returns nil.
func (w *world) eventually(what string, condition func() error) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(2 * time.Millisecond) {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within a minute: %s: %v", what, err)
		}
	}
}

// became waits until the stored link of the session has the given state.
func (w *world) became(state puntuale.LinkState) puntuale.Link {
	w.t.Helper()
	var s puntuale.Session
	w.eventually("state "+state.String(), func() error {
		if s = w.session(); s.Link.State != state {
			return fmt.Errorf("it is %v", s.Link.State)
		}
		return nil
	})
	return s.Link
}

// did waits until the calls of the network are exactly these calls.
func (n *node) did(want ...string) {
	n.w.t.Helper()
	n.w.eventually(fmt.Sprint("calls ", want), func() error {
		if got := n.net.called(); !slices.Equal(got, want) {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}

// maxSteps bounds the steps of one second in one call of advance. It is less than a minute, because the store keeps an
// answer to a command only for a minute.
const maxSteps = 40

// advance moves the clock in steps of a second, until check returns nil. After each step, it gives the woken
// goroutines time to run.
func (w *world) advance(d time.Duration, check func() error) {
	w.t.Helper()
	steps, next := 0, time.Now()
	w.eventually(fmt.Sprintf("something within steps of %v", d), func() error {
		if now := time.Now(); steps < maxSteps && !now.Before(next) {
			w.DB.Clock.Advance(d)
			steps, next = steps+1, now.Add(50*time.Millisecond)
		}
		return check()
	})
}
