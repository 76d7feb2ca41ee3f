package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"puntuale/internal/price"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/booking"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	calendars "puntuale/internal/control/calendar"
	"puntuale/internal/control/statement"
	"puntuale/internal/delivery"
	"puntuale/internal/httpapi"
	"puntuale/internal/intake"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// morning is the time at which the tests' clocks begin: a Friday, 10:30 in Rome.
var morning = time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC)

// service is the complete API on its own store, with one partner.
type service struct {
	t        *testing.T
	handler  http.Handler
	control  *control.Control
	accounts *account.Accounts
	clock    *clock.Fake
	partner  string // the partner's key
	log      *lockedBuffer
	wakeups  *wakeups
	db       *storetest.Database
	network  *network
	owner    *owner
	intake   *intake.Intake
	outbox   delivery.Store
	rules    *automation.Automations
	calendar *calendars.Calendars
	tenants  puntuale.TenantStore
	store    *store.Store
	vault    *auth.Vault

	statements *statement.Statements

	undescribed bool // answers are not compared with the API's document, which takes longer than the calls
}

// databases runs a test on both databases, each time with a new service.
func databases(t *testing.T, o options, test func(*testing.T, *service)) {
	t.Helper()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.driver = driver
			test(t, newService(t, o))
		})
	}
}

// options change a service before it starts.
type options struct {
	operator func(puntuale.Operator) puntuale.Operator // wraps the store that control uses
	sandbox  bool
	rate     float64
	driver   storetest.Driver // the database; nil: SQLite
	public   string           // the service's address
	media    []string         // the extensions of files; nil: the usual ones
	opener   puntuale.MediaOpener
	internet bool // true: receivers of webhooks must be public; false: they may be on this machine
}

func newService(t *testing.T, o options) *service {
	t.Helper()
	if o.driver == nil {
		o.driver = storetest.SQLite
	}
	db := o.driver(t)
	db.Config.Public = o.public
	s := &service{t: t, clock: db.Clock, log: &lockedBuffer{}, wakeups: &wakeups{}, db: db}
	s.clock.Set(morning)
	opened := db.Open(t)
	s.outbox, s.store = opened, opened
	s.network = &network{t: t, queue: opened, fleet: opened, ledger: opened}
	var operator puntuale.Operator = opened
	vault := testVault(t)
	s.network.mark = func(client puntuale.ClientID, phone string) string { return control.Mark(vault, client, phone) }
	s.vault = vault
	s.intake = intake.New(intake.Config{
		Store: opened, MessageMark: messageMark, Clock: s.clock, Mark: s.network.mark, Logger: slog.New(slog.DiscardHandler), Tap: vault.ReadTap,
		Answer: func(ctx context.Context, m puntuale.TakenMessage, f booking.FoundAnswer) error {
			return s.control.Answer(ctx, m, f)
		},
	})
	if o.operator != nil {
		operator = o.operator(operator)
	}
	s.tenants = operator
	s.control = control.New(control.Config{
		Tenants: operator, Devices: operator, Maintenance: operator, Clock: s.clock, Sandbox: o.sandbox, Vault: vault, Keep: puntuale.Retention{Months: 24}, Public: o.public, Media: o.media,
		Links: func(session puntuale.Session) bool { return session.Sandbox || session.Type == puntuale.Official },
		Take:  s.intake.Take, Opener: o.opener,
		Wakeup: func(id puntuale.SessionID, due time.Time) {
			s.wakeups.take(id, due)
			s.owner.wake(id, due)
		},
	})
	s.accounts = account.New(account.Config{
		Control: s.control, Tenants: operator, Partners: operator, Clock: s.clock, Sandbox: o.sandbox, Vault: vault, Public: o.public, Currency: price.Embedded().Currency,
		Wakeup: func(id puntuale.SessionID, due time.Time) {
			s.wakeups.take(id, due)
			s.owner.wake(id, due)
		},
	})
	s.rules = automation.New(automation.Config{Control: s.control, Tenants: operator, Hooks: opened, Vault: vault, Clock: s.clock, Media: o.media})
	s.calendar = calendars.New(calendars.Config{Control: s.control, Tenants: operator, Vault: vault, Clock: s.clock, Refuses: refusesHTTP})
	s.owner = newOwner(t, opened, db, s.clock, vault, s.control.Answered)
	var err error
	_, s.partner, err = s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Agenzia Rossi", Email: "info@rossi.example", Password: "una frase lunga 42"})
	if err != nil {
		t.Fatal(err)
	}
	s.statements = statement.New(statement.Config{Tenants: operator, Maintenance: operator, Budgets: opened, Clock: s.clock})
	s.handler, err = httpapi.New(httpapi.Config{
		Control: s.control, Accounts: s.accounts, Webhooks: newWebhooks(operator, vault, s.clock, !o.internet), Automations: s.rules, Calendars: s.calendar, Statements: s.statements, Now: s.clock.Now, Rate: o.rate,
		Logger: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// response is the answer to a call.
type response struct {
	status int
	header http.Header
	body   string
}

// call sends one request with a key in a header, and checks the answer against the OpenAPI document.
func (s *service) call(method, target, key, body string, header ...string) response {
	s.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, content)
	r.Header.Set("X-Request-Id", "test")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.send(r)
}

func (s *service) send(r *http.Request) response {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	a := response{w.Code, w.Header(), strings.TrimSuffix(w.Body.String(), "\n")}
	if !s.undescribed {
		checkAgainstDocument(s.t, r, a)
	}
	return a
}

// must makes a call that must succeed. If v is not nil, it decodes the answer into v.
func (s *service) must(v any, method, target, key, body string, header ...string) response {
	s.t.Helper()
	a := s.call(method, target, key, body, header...)
	if a.status != http.StatusOK {
		s.t.Fatalf("%s %s %s: %d %s", method, target, body, a.status, a.body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(a.body), v); err != nil {
			s.t.Fatal(err)
		}
	}
	return a
}

// newClient creates a client of the account type, and returns its key.
func (s *service) newClient(email, accountType string) string {
	s.t.Helper()
	var created struct {
		Key string `json:"api_key"`
	}
	s.must(&created, "POST", "/api/client/create", s.partner,
		`{"name":"Studio Bianchi","email":"`+email+`","password":"p","phone":"0212345678","account_type":"`+accountType+`"}`)
	return created.Key
}

// newSequence creates a sequence and returns its id. steps is JSON.
func (s *service) newSequence(key, steps string) string {
	s.t.Helper()
	var created struct {
		ID string `json:"id"`
	}
	s.must(&created, "POST", "/api/sequences", key, `{"name":"Promemoria","steps":[`+steps+`]}`)
	return created.ID
}

// Steps that most tests use. stepNow leaves immediately. The second step leaves an hour after the call, and the third
// step on the day before an appointment.
const (
	stepNow   = `{"text":"Ciao {{nome|amico}}","timing":{"anchor":"start","offset":{"amount":0}}}`
	stepLater = `{"text":"Tra un'ora: {{testo}}","timing":{"anchor":"start","offset":{"amount":1,"unit":"hours","direction":"after"}}}`
	stepDate  = `{"text":"Il {{quando:giorno}} alle {{quando:ora}}","timing":{"anchor":"quando","offset":{"amount":1,"unit":"days","direction":"before"},"at":"18:00"}}`
)

// started is the answer to a start.
type started struct {
	ID        []string `json:"id"`
	Cap       int64    `json:"daily_api_cap"`
	Used      int64    `json:"daily_api_used"`
	Remaining int64    `json:"daily_api_remaining"`
}

// wakeups collects the wakeups that are meant for a dispatcher.
type wakeups struct {
	mu  sync.Mutex
	got []wakeup
}

type wakeup struct {
	session puntuale.SessionID
	due     time.Time
}

func (h *wakeups) take(session puntuale.SessionID, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, wakeup{session, due})
}

// drain returns the wakeups since the last drain.
func (h *wakeups) drain() []wakeup {
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
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

// golden compares a text with a file in testdata. With the flag -update, it writes the file instead.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // everybody may read this file, because it is part of the source
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got); -update writes it anew:\n%s", path, diff)
	}
}

// messageMark is a simple replacement for a keyed hash.
func messageMark(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, client, session, chat, id)))
}
