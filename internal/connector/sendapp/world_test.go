package sendapp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sendapp"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/intake"
	"puntuale/internal/store/storetest"
)

const (
	maxWait = 20 * time.Second
	person  = "+393331234567"
	own     = "390117654321" // the sender's digits
)

// world contains a connector with one session, a real store, and the gateway.
type world struct {
	t       testing.TB
	w       *storetest.World
	c       *storetest.Client
	clock   *clock.Fake
	peer    *gatewaytest.Peer
	conn    *sendapp.Connector
	session puntuale.SessionID
	vault   *auth.Vault
	hooks   *httptest.Server
	log     *logLines

	mu      sync.Mutex
	reports map[puntuale.SessionID][]puntuale.LinkReport
	lastID  puntuale.MessageID
	before  func(path string) // asked sets this function
	written []puntuale.InboundMessage
}

// newWorld returns a world with a session that is not linked yet.
func newWorld(t testing.TB, driver storetest.Driver) *world {
	t.Helper()
	w := &world{t: t, w: storetest.NewWorld(t, driver(t)), peer: gatewaytest.New(t), reports: map[puntuale.SessionID][]puntuale.LinkReport{}, lastID: 1 << 40, log: &logLines{}}
	w.clock, w.c = w.w.DB.Clock, w.w.Client(puntuale.AccountFull)
	var err error
	if w.vault, err = auth.NewVault(make([]byte, auth.DataKeySize)); err != nil {
		t.Fatal(err)
	}
	in := intake.New(intake.Config{Store: w.w.Store, Clock: w.clock, Logger: quiet()})
	mux := http.NewServeMux()
	w.hooks = httptest.NewServer(mux)
	t.Cleanup(w.hooks.Close)
	w.conn = sendapp.New(sendapp.Config{
		Store: w.w.Store, Seal: w.vault.Seal, Unseal: w.vault.Open, Mark: w.vault.Mark, Media: files{}, Transport: w,
		Public: w.hooks.URL, Take: w.taking(in.Take), Clock: w.clock, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Report: func(r puntuale.LinkReport) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports[r.Session] = append(w.reports[r.Session], r)
		},
	})
	mux.Handle("/", w.conn.NewWebhook())
	return w
}

// taking returns a Take that also records the inbound messages.
func (w *world) taking(take func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error) func(context.Context, puntuale.SessionID, puntuale.InboundBatch) error {
	return func(ctx context.Context, s puntuale.SessionID, in puntuale.InboundBatch) error {
		w.mu.Lock()
		w.written = append(w.written, in.Messages...)
		w.mu.Unlock()
		return take(ctx, s, in)
	}
}

// heard returns the inbound messages since the last call of heard.
func (w *world) heard() []puntuale.InboundMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.written
	w.written = nil
	return all
}

// logLines is what the connector logged.
type logLines struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// take returns what was logged since the last call of take.
func (l *logLines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.lines.Reset()
	return l.lines.String()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// linked returns a world with a session that has the keys of a linked instance and is online.
func linked(t testing.TB, driver storetest.Driver) *world {
	t.Helper()
	w := newWorld(t, driver)
	w.session = w.open(w.keys(w.peer.Linked(own)))
	w.until("online", func() bool { return w.conn.Online(w.session) })
	return w
}

func (w *world) keys(instance string) puntuale.GatewayKeys {
	return puntuale.GatewayKeys{BaseURL: w.peer.URL, AccessToken: gatewaytest.Token, InstanceID: instance}
}

// open creates a session and opens it.
func (w *world) open(k puntuale.GatewayKeys) puntuale.SessionID {
	w.t.Helper()
	id, err := w.c.CreateGateway(context.Background(), puntuale.Session{Name: "gateway", Type: puntuale.SendApp, Created: storetest.Begin}, k.Mark(w.vault.Mark),
		func(id puntuale.SessionID) []byte {
			return w.vault.Seal(puntuale.SealedGateway, id.SealPlace(), k.JSON())
		}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.take(id)
	return id
}

// take opens a session, as its owner does, and waits for the session's first status check.
func (w *world) take(id puntuale.SessionID) {
	w.t.Helper()
	s, err := w.c.Tenant.Session(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	before := len(w.reportsOf(id))
	w.conn.Open(s)
	w.t.Cleanup(func() { w.conn.Close(context.Background(), id) })
	w.until("the session was looked at", func() bool { return len(w.reportsOf(id)) > before })
}

func (w *world) reportsOf(id puntuale.SessionID) []puntuale.LinkReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reports[id]
}

// last returns the latest report of a session.
func (w *world) last(id puntuale.SessionID) (r puntuale.LinkReport) {
	if all := w.reportsOf(id); len(all) > 0 {
		r = all[len(all)-1]
	}
	return r
}

func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	end, look := time.NewTimer(maxWait), time.NewTicker(time.Millisecond)
	defer end.Stop()
	defer look.Stop()
	for !condition() {
		select {
		case <-look.C:
		case <-end.C:
			w.t.Fatalf("not in time: %s", what)
		}
	}
}

// later moves the clock forward by the duration step, again and again, until condition holds. One move is not enough,
// because a goroutine may begin to wait for the clock after the move.
func (w *world) later(step time.Duration, what string, condition func() bool) {
	w.t.Helper()
	w.until(what, func() bool {
		if condition() {
			return true
		}
		if w.clock.Waiters() > 0 {
			w.clock.Advance(step)
		}
		return false
	})
}

func (w *world) within() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), maxWait)
	w.t.Cleanup(cancel)
	return ctx
}

// envelope returns an envelope with a new message id. The message is in no store.
func (w *world) envelope(to string, c puntuale.Content) puntuale.Envelope {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	return puntuale.Envelope{
		Client: w.c.ID, Session: w.session, Run: puntuale.RunID(w.lastID), Message: w.lastID, ConnectorID: puntuale.ConnectorID(w.lastID, 0),
		Attempt: 1, Token: 7<<32 | int64(w.lastID-1<<40), To: to, Content: c,
	}
}

// send prepares and sends a message.
func (w *world) send(to string, c puntuale.Content) (puntuale.Acceptance, error) {
	w.t.Helper()
	p, err := w.conn.Prepare(w.within(), w.envelope(to, c))
	if err != nil {
		return puntuale.Acceptance{}, err
	}
	return w.conn.Send(w.within(), p)
}

// flying is a stored message with an attempt in flight.
type flying struct {
	id      puntuale.MessageID
	token   int64
	receipt puntuale.Acceptance
	err     error // the error of the attempt
}

// fly sends a stored text, as the dispatcher would. It records no outcome.
func (w *world) fly(to, words string) flying {
	w.t.Helper()
	return w.flyContent(to, text(words))
}

func (w *world) flyContent(to string, c puntuale.Content) flying {
	w.t.Helper()
	run := w.c.Run(to, w.clock.Now(), 1)
	run.Run.Session = w.session
	run.Messages[0].Content = c
	started, err := w.c.Start(context.Background(), run)
	if err != nil {
		w.t.Fatal(err)
	}
	f := flying{id: started.IDs[0]}
	var granted []puntuale.ClaimAnswer
	if f.token, granted = w.w.MustClaim(w.w.MustJoin(), w.clock.Now(), w.c.Items(to, 0, f.id)...); granted[0] != puntuale.ClaimGranted {
		w.t.Fatalf("granted %v", granted)
	}
	e := w.envelope(to, run.Messages[0].Content)
	e.Message, e.ConnectorID, e.Token = f.id, puntuale.ConnectorID(f.id, 0), f.token
	p, err := w.conn.Prepare(w.within(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	f.receipt, f.err = w.conn.Send(w.within(), p)
	return f
}

// record stores the outcome of an attempt, as the dispatcher would.
func (w *world) record(f flying) {
	w.t.Helper()
	o := puntuale.Decide(puntuale.Attempt{Now: w.clock.Now(), Begun: w.clock.Now(), Message: f.id, Number: 1, GiveUp: 24 * time.Hour}, f.receipt, f.err)
	w.w.MustRecord(w.clock.Now(), puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: w.c.ID, ID: f.id}}, f.token, o)
}

// report makes the gateway post a report, and requires status 200.
func (w *world) report(event string, payload any) {
	w.t.Helper()
	if status := w.peer.Report(w.peer.Webhook(own), w.instance(), event, payload); status != http.StatusOK {
		w.t.Fatalf("the webhook answered %d", status)
	}
}

func (w *world) instance() string {
	w.t.Helper()
	return w.stored(w.session).InstanceID
}

// stored returns the stored keys of a session.
func (w *world) stored(id puntuale.SessionID) (k puntuale.GatewayKeys) {
	w.t.Helper()
	_, sealed, err := w.w.SealedGateway(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	plain, err := w.vault.Open(puntuale.SealedGateway, id.SealPlace(), sealed)
	if err == nil {
		err = json.Unmarshal(plain, &k)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

// asked sets a function that is called before each request to the gateway, with the request's path.
func (w *world) asked(do func(path string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = do
}

// RoundTrip sends a request to the gateway.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	before := w.before
	w.mu.Unlock()
	if before != nil {
		before(r.URL.Path)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (w *world) lastSent() gatewaytest.Sent {
	w.t.Helper()
	all := w.peer.Sent()
	if len(all) == 0 {
		w.t.Fatal("the gateway sent nothing")
	}
	return all[len(all)-1]
}

func text(s string) puntuale.Content { return puntuale.Content{Text: s} }

// files is a source of media. It has a file at every address except forbidden.
type files struct{}

const (
	forbidden = "https://10.0.0.1/foto.jpg"
	away      = "https://example.com/away.jpg"
)

// awayFile is a file whose storage does not answer.
type awayFile struct{ io.ReadSeeker }

func (awayFile) Read([]byte) (int, error) {
	return 0, fmt.Errorf("read: %w", &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because("file.storage_away")})
}

func (files) Fetch(_ context.Context, r puntuale.MediaRequest) (*puntuale.Media, error) {
	if r.URL == forbidden {
		return nil, &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Quoted("Indirizzo non ammesso"), Detail: puntuale.Quoted("rete privata")}
	}
	if r.URL == away {
		return &puntuale.Media{ReadSeekCloser: file{awayFile{strings.NewReader("")}}, Size: 1, ContentType: "image/jpeg", Name: "listino.jpg"}, nil
	}
	return &puntuale.Media{ReadSeekCloser: file{strings.NewReader("x")}, Size: 1, ContentType: "image/jpeg"}, nil
}

type file struct{ io.ReadSeeker }

func (file) Close() error { return nil }

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, d storetest.Driver)) {
	for name, d := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

func number(n int) string { return fmt.Sprintf("+39333000%04d", n) }
