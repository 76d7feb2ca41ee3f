package official_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/catalogue"
	"puntuale/internal/clock"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/intake"
	"puntuale/internal/price"
	"puntuale/internal/store/storetest"
)

const maxWait = 20 * time.Second

// These functions return the Italian and the English sentence of a reason. People read Italian, and programs English.
var italian, english = catalogue.Italian.Sentence, catalogue.Message

// world contains a connector with one open session, a real store, and the peer.
type world struct {
	t       testing.TB
	w       *storetest.World
	c       *storetest.Client
	clock   *clock.Fake
	peer    *graphtest.Peer
	number  graphtest.Number
	conn    *official.Connector
	config  official.Config
	unknown int // refusals with a code that the connector does not know
	session puntuale.SessionID
	webhook string
	vault   *auth.Vault
	files   *files

	mu      sync.Mutex
	reports []puntuale.LinkReport
	paid    int // memory grants that are open
	lastID  puntuale.MessageID
}

// setup changes a world before its session opens.
type setup struct {
	number func(*graphtest.Number)
	config func(*official.Config)
	driver storetest.Driver // nil: SQLite
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	if s.driver == nil {
		s.driver = storetest.SQLite
	}
	w := &world{t: t, w: storetest.NewWorld(t, s.driver(t)), number: graphtest.NewNumber("101"), files: &files{kinds: map[string]string{}}, lastID: 1 << 40}
	w.clock, w.c = w.w.DB.Clock, w.w.Client(puntuale.AccountFull)
	if s.number != nil {
		s.number(&w.number)
	}
	w.peer = graphtest.New(t, w.number)
	var err error
	if w.vault, err = auth.NewVault(make([]byte, auth.DataKeySize)); err != nil {
		t.Fatal(err)
	}
	in := intake.New(intake.Config{Store: w.w.Store, MessageMark: messageMark, Country: price.Country, Clock: w.clock, Logger: quiet()})
	cfg := official.Config{
		Store: w.w.Store, Unseal: w.vault.Open, Media: w.files, Take: in.Take, API: w.peer.URL, Clock: w.clock, Logger: quiet(),
		TapPayload: w.vault.TapPayload, Country: price.Country, UnknownCode: func() { w.mu.Lock(); defer w.mu.Unlock(); w.unknown++ },
		Report: func(r puntuale.LinkReport) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, r)
		},
	}
	cfg.Memory = func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if side != puntuale.ClientSide || id != int64(w.c.ID) {
			w.t.Errorf("%s %d pays for Meta's answer", side, id)
		}
		w.paid++
		return noMemory{}, func() { w.mu.Lock(); defer w.mu.Unlock(); w.paid-- }
	}
	t.Cleanup(func() {
		if w.mu.Lock(); w.paid != 0 {
			t.Errorf("%d grants stay open", w.paid)
		}
		w.mu.Unlock()
	})
	if s.config != nil {
		s.config(&cfg)
	}
	w.config = cfg
	w.conn = official.New(cfg)
	w.session = w.newSession(w.number)
	w.open(w.session)
	w.listen()
	return w
}

// listen lets the network's reports arrive at the present connector.
func (w *world) listen() {
	server := httptest.NewServer(w.conn.NewWebhook())
	w.t.Cleanup(server.Close)
	w.webhook = server.URL + w.session.WebhookPath()
}

// noMemory is the memory grant of a client that has no memory left. Nevertheless, short answers are read, because they
// decide about a message.
type noMemory struct{}

func (noMemory) Take(int64) error { return puntuale.Overloaded(0) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func keysOf(n graphtest.Number) puntuale.OfficialKeys {
	return puntuale.OfficialKeys{PhoneNumberID: n.ID, AccessToken: n.Token, AppSecret: n.Secret, VerifyToken: n.Verify, BusinessAccountID: n.Account}
}

func (w *world) seal(id puntuale.SessionID, n graphtest.Number) []byte {
	return w.vault.Seal(puntuale.SealedOfficial, id.SealPlace(), keysOf(n).JSON())
}

func (w *world) newSession(n graphtest.Number) puntuale.SessionID {
	w.t.Helper()
	id, err := w.c.CreateOfficial(context.Background(), puntuale.Session{Name: "ufficiale", Type: puntuale.Official, Created: storetest.Begin},
		func(id puntuale.SessionID) []byte { return w.seal(id, n) }, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// open opens a session and waits until its first status check ended.
func (w *world) open(id puntuale.SessionID) {
	w.t.Helper()
	s, err := w.c.Tenant.Session(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	before := w.countReports()
	w.conn.Open(s)
	w.t.Cleanup(func() { w.conn.Close(context.Background(), id) })
	w.until("the session was looked at", func() bool { return w.countReports() > before })
}

// restart replaces the connector by a new one over the same store, as after a crash or on another node.
func (w *world) restart() {
	w.t.Helper()
	w.conn.Close(w.within(), w.session)
	w.conn = official.New(w.config)
	w.open(w.session)
	w.listen()
}

func (w *world) countReports() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.reports)
}

// last returns the latest report.
func (w *world) last() puntuale.LinkReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reports) == 0 {
		return puntuale.LinkReport{}
	}
	return w.reports[len(w.reports)-1]
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

// advance moves the clock forward. Then it waits until the session is online (if the argument online is true) or
// offline.
func (w *world) advance(d time.Duration, online bool) {
	w.t.Helper()
	if err := w.clock.Waiting(w.within(), 1); err != nil {
		w.t.Fatal(err)
	}
	w.clock.Advance(d)
	w.until(fmt.Sprintf("online is %v", online), func() bool { return w.conn.Online(w.session) == online })
}

func (w *world) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	w.t.Cleanup(cancel)
	return ctx
}

// wrote opens a person's window, as if the person had written.
func (w *world) wrote(phones ...string) {
	w.t.Helper()
	var all []puntuale.TakenMessage
	for _, phone := range phones {
		m := puntuale.InboundMessage{Client: w.c.ID, Session: w.session, Phone: phone, At: w.clock.Now()}
		all = append(all, puntuale.TakenMessage{InboundMessage: m, Names: []string{phone}})
	}
	if _, err := w.w.KeepInbound(context.Background(), w.clock.Now(), all); err != nil {
		w.t.Fatal(err)
	}
}

// envelope returns an envelope with a new message id.
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

func (w *world) must(to string, c puntuale.Content) graphtest.Taken {
	w.t.Helper()
	receipt, err := w.send(to, c)
	if err != nil {
		w.t.Fatalf("send: %v", err)
	}
	taken := w.peer.Taken()
	last := taken[len(taken)-1]
	if italian(receipt.Detail) != last.WAMID {
		w.t.Errorf("the receipt says %q, Meta took %q", receipt.Detail, last.WAMID)
	}
	return last
}

// refused fails the test unless err is a send error of this kind. Such an error proves that the message did not reach
// Meta.
func (w *world) refused(err error, kind puntuale.SendErrorKind) *puntuale.SendError {
	w.t.Helper()
	e := puntuale.AsSendError(err)
	if e == nil || e.Kind != kind || e.Reason.IsZero() {
		w.t.Fatalf("got %v (%+v), want kind %d", err, e, kind)
	}
	return e
}

func text(s string) puntuale.Content { return puntuale.Content{Text: s} }

// approved returns a content that leaves by its template also within the 24-hour window, because it has no text.
func approved(name string) puntuale.Content {
	return puntuale.Content{Template: "t", Official: &puntuale.Approved{Name: name, Language: "it", Body: []puntuale.Parameter{{Text: "Ada"}}}}
}

// files is a source of media. Each file's text contains its address. Its type follows from the extension.
type files struct {
	mu      sync.Mutex
	kinds   map[string]string // types by extension, if they differ from the usual ones
	size    int64             // the size of the next files; 0: the length of their text
	plain   bool              // files with the extension ogg are not Opus
	fetched int
	limits  []int64
}

var usualKinds = map[string]string{
	".jpg": "image/jpeg", ".png": "image/png", ".mp4": "video/mp4", ".ogg": "audio/ogg", ".mp3": "audio/mpeg", ".pdf": "application/pdf", ".txt": "text/plain",
}

func (f *files) Fetch(_ context.Context, r puntuale.MediaRequest) (*puntuale.Media, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetched++
	f.limits = append(f.limits, r.MaxBytes)
	address, _, _ := strings.Cut(r.URL, "?")
	extension := strings.ToLower(path.Ext(address))
	kind := f.kinds[extension]
	if kind == "" {
		kind = usualKinds[extension]
	}
	data := []byte("OggS OpusHead " + r.URL)
	if f.plain {
		data = []byte("OggS vorbis")
	}
	if f.size > 0 {
		data = append(data, make([]byte, max(0, f.size-int64(len(data))))...)
	}
	return &puntuale.Media{ReadSeekCloser: readCloser{bytes.NewReader(data)}, Size: int64(len(data)), ContentType: kind}, nil
}

type readCloser struct{ io.ReadSeeker }

func (readCloser) Close() error { return nil }

// addressOf returns the address from which an uploaded file was fetched. Each file of these tests contains this
// address.
func addressOf(f graphtest.File) string {
	_, address, _ := strings.Cut(string(f.Data), "OpusHead ")
	return strings.TrimRight(address, "\x00")
}

// messageOf returns the message id in the callback of an accepted message.
func messageOf(t testing.TB, m graphtest.Taken) puntuale.MessageID {
	t.Helper()
	text, _, _ := strings.Cut(m.Message.Token, ".")
	id, err := strconv.ParseInt(text, 36, 64)
	if err != nil {
		t.Fatal(err)
	}
	return puntuale.MessageID(id)
}

// messageMark returns a readable text. In the product, a keyed hash takes its place.
func messageMark(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string {
	return fmt.Sprint(client, session, chat, id)
}
