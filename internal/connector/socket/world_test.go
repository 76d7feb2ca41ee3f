//go:build !nosocket

package socket_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/catalogue"
	"puntuale/internal/clock"
	"puntuale/internal/connector/socket"
	"puntuale/internal/connector/socket/whatsapptest"
	"puntuale/internal/store/storetest"
)

// The shop is the number that sends. In most tests it is session 7 of client 3.
const (
	shopNumber = "393330000001"
	annaNumber = "393330000002"
	theSession = puntuale.SessionID(7)
	theClient  = puntuale.ClientID(3)
)

// italian returns the Italian sentence of a reason, as the pages show it.
var italian = catalogue.Italian.Sentence

// world contains a connector, its simulated network, and all reports of the connector.
type world struct {
	t     testing.TB
	net   *whatsapptest.Network
	shop  *whatsapptest.Account
	conn  *socket.Connector
	vault *auth.Vault
	db    *sql.DB
	file  string // the file of db, if it has one
	log   *bytes.Buffer
	pace  puntuale.Pace
	media puntuale.MediaSource
	owned func() bool

	postgres bool
	clock    clock.Clock   // nil: the system's clock
	gate     chan struct{} // if not nil: the connector waits until the test closes this channel, and then reads the keys

	mu      sync.Mutex
	reports []puntuale.LinkReport
	told    []puntuale.InboundBatch
	fails   error // the error that Take returns
	failed  []puntuale.InboundBatch
	met     map[string]time.Time
	wrote   map[string]bool
	gone    map[puntuale.SessionID]bool
	changed chan struct{}
	next    puntuale.MessageID
}

// newWorld returns a world whose keys are in a file. If the machine crashes, the file may lose the last changes.
func newWorld(t testing.TB) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "whatsapp.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	w := newWorldWith(t, db, false)
	w.file = file
	return w
}

// onDatabases runs a test on each kind of database. The keys of numbers are in the same place as on a real node.
func onDatabases(t *testing.T, test func(t *testing.T, w *world)) {
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, postgres, err := driver(t).Open(t).WhatsApp(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			test(t, newWorldWith(t, db, postgres))
		})
	}
}

func newWorldWith(t testing.TB, db *sql.DB, postgres bool) *world {
	t.Helper()
	t.Cleanup(func() { db.Close() })
	w := &world{
		t: t, db: db, postgres: postgres, net: whatsapptest.New(t), changed: make(chan struct{}), met: map[string]time.Time{},
		wrote: map[string]bool{}, gone: map[puntuale.SessionID]bool{}, log: &bytes.Buffer{}, next: 1 << 40,
	}
	w.shop = w.net.Account(shopNumber)
	var err error
	if w.vault, err = auth.NewVault(bytes.Repeat([]byte{7}, auth.DataKeySize)); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// start makes a connector, as a server does when it starts.
func (w *world) start() {
	w.conn = socket.New(socket.Config{
		Database: w.keys, Clock: w.clock,
		Seal: w.vault.Seal, Unseal: w.vault.Open, IDKey: []byte("of the installation"),
		Known: w, Media: w.media, Report: w.report, Take: w.take, HTTP: w.net.HTTPClient(),
		Memory: func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
			if side != puntuale.ClientSide {
				w.t.Errorf("%s %d pays for WhatsApp's answer", side, id)
			}
			return noMemory{}, func() {}
		},
		Logger: slog.New(slog.NewTextHandler(&locked{w: w}, nil)), Owned: w.owned,
	})
}

// noMemory is the memory grant of a client that has no memory left. Nevertheless, short answers are read.
type noMemory struct{}

func (noMemory) Take(int64) error { return puntuale.Overloaded(0) }

func (w *world) keys(ctx context.Context) (socket.Database, error) {
	if w.gate != nil {
		select {
		case <-w.gate:
		case <-ctx.Done():
			return socket.Database{}, ctx.Err()
		}
	}
	return socket.Database{DB: w.db, Postgres: w.postgres}, nil
}

// stop closes all open sessions and stops the connector.
func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.conn.Close(ctx, theSession)
	w.conn.Stop()
}

// locked is a log buffer for several goroutines.
type locked struct{ w *world }

func (l *locked) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

func (w *world) changes() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) report(r puntuale.LinkReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
	w.changes()
}

func (w *world) take(_ context.Context, session puntuale.SessionID, reported puntuale.InboundBatch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails != nil {
		w.failed = append(w.failed, reported)
		w.changes()
		return w.fails
	}
	if session != theSession {
		return fmt.Errorf("session %d", session)
	}
	w.told = append(w.told, reported)
	for _, h := range reported.Messages {
		w.wrote[h.Phone] = w.wrote[h.Phone] || !h.Own
	}
	w.changes()
	return nil
}

func (w *world) Knows(_ context.Context, _ puntuale.ClientID, _ puntuale.SessionID, to string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrote[to] || !w.met[to].IsZero(), nil
}

func (w *world) NoteKnown(_ context.Context, client puntuale.ClientID, session puntuale.SessionID, to string, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if client != theClient || session != theSession {
		return errors.New("another's")
	}
	if w.met[to].IsZero() {
		w.met[to] = at
	}
	return nil
}

func (w *world) MetSince(_ context.Context, _ puntuale.ClientID, _ puntuale.SessionID, since time.Time, _ int) (all []time.Time, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.met {
		if !at.Before(since) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b time.Time) int { return b.Compare(a) })
	return all, nil
}

func (w *world) SessionsThere(_ context.Context, all []puntuale.SessionID) (map[puntuale.SessionID]bool, error) {
	existing := map[puntuale.SessionID]bool{}
	for _, id := range all {
		existing[id] = !w.gone[id]
	}
	return existing, nil
}

// await waits up to 30 seconds until the condition holds.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		w.mu.Lock()
		ok, changed := holds(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("never: %s; last reports %+v", what, w.reports[max(0, len(w.reports)-3):])
		}
	}
}

// last returns the latest report. The caller holds the lock.
func (w *world) last() puntuale.LinkReport {
	if len(w.reports) == 0 {
		return puntuale.LinkReport{}
	}
	return w.reports[len(w.reports)-1]
}

func word(r puntuale.LinkReport) string {
	return puntuale.Link{State: r.State, Condition: r.Condition}.Word()
}

// awaitWord waits until the latest report has this state, and returns the report.
func (w *world) awaitWord(want string) (r puntuale.LinkReport) {
	w.t.Helper()
	w.await("state "+want, func() bool {
		r = w.last()
		return word(r) == want
	})
	return r
}

// open opens the session in the state that was reported last.
func (w *world) open() {
	w.mu.Lock()
	l := w.last()
	w.mu.Unlock()
	w.conn.Open(puntuale.Session{ID: theSession, Client: theClient, Type: puntuale.Socket, Pace: w.pace, Link: puntuale.Link{
		State: l.State, Condition: l.Condition, Number: l.Number, Detail: l.Detail, Until: l.Until, Limited: l.Limited,
	}})
}

// link opens the session and links it by QR code.
func (w *world) link() {
	w.t.Helper()
	w.open()
	w.awaitWord("unlinked")
	w.pair()
}

// pair links the open session by QR code, and waits until the session is online.
func (w *world) pair() {
	w.t.Helper()
	if err := w.conn.Pair(w.t.Context(), theSession, puntuale.PairQR, ""); err != nil {
		w.t.Fatal(err)
	}
	var code string
	w.await("a code", func() bool {
		code = w.last().Code.Text
		return code != ""
	})
	if err := w.shop.ScanQR(w.t.Context(), code); err != nil {
		w.t.Fatal(err)
	}
	w.awaitWord("online")
}

// message returns an envelope with a new message id.
func (w *world) message(to string, c puntuale.Content) puntuale.Envelope {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return puntuale.Envelope{
		Client: theClient, Session: theSession, Run: 1, Message: w.next, ConnectorID: puntuale.ConnectorID(w.next, 0), Attempt: 1, To: to, Content: c,
	}
}

func (w *world) text(to, text string) puntuale.Envelope {
	return w.message(to, puntuale.Content{Text: text})
}

// send prepares and sends a message, and returns the network's answer.
func (w *world) send(e puntuale.Envelope) (puntuale.Acceptance, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	p, err := w.conn.Prepare(ctx, e)
	if err != nil {
		return puntuale.Acceptance{}, err
	}
	return w.conn.Send(ctx, p)
}

func (w *world) mustSend(e puntuale.Envelope) puntuale.Acceptance {
	w.t.Helper()
	r, err := w.send(e)
	if err != nil {
		w.t.Fatalf("send: %v", err)
	}
	return r
}

// receipts returns the kinds of a message's receipts, in the order of the reports.
func (w *world) receipts(m puntuale.MessageID) (kinds []puntuale.ReceiptKind) {
	for _, reported := range w.told {
		for _, e := range reported.Receipts {
			if e.ID == m {
				kinds = append(kinds, e.Kind)
			}
		}
	}
	return kinds
}

// heard returns how many messages a person wrote. The caller holds the lock.
func (w *world) heard(who string) (n int) {
	for _, told := range w.told {
		for _, h := range told.Messages {
			if h.Phone == who {
				n++
			}
		}
	}
	return n
}

// eventually waits up to 30 seconds for a condition. Use it if no event wakes await.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// files is a media source with the files that the test gives it.
type files map[string]struct {
	kind string
	body []byte
}

func (f files) Fetch(_ context.Context, r puntuale.MediaRequest) (*puntuale.Media, error) {
	one, ok := f[r.URL]
	if !ok {
		one.kind, one.body = "image/jpeg", []byte("not really a picture: "+r.URL)
		if strings.HasSuffix(r.URL, ".pdf") {
			one.kind = "application/pdf"
		}
	}
	return &puntuale.Media{ReadSeekCloser: nopCloser{bytes.NewReader(one.body)}, Size: int64(len(one.body)), ContentType: one.kind}, nil
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }
