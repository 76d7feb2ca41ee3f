package web_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/booking"
	"puntuale/internal/chatwoot"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	calendars "puntuale/internal/control/calendar"
	"puntuale/internal/control/link"
	"puntuale/internal/control/statement"
	"puntuale/internal/control/webhook"
	"puntuale/internal/delivery"
	"puntuale/internal/httpkit"
	"puntuale/internal/intake"
	"puntuale/internal/media"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
	"puntuale/internal/web"
	"puntuale/internal/web/page"
)

// world is a test's installation: the pages on a real store. It has a partner with two clients, and another partner
// with one client. Its clock begins at storetest.Begin (10:00 in Rome), and only tests advance it.
type world struct {
	t          testing.TB
	base       string // the beginning of the server's addresses
	store      *store.Store
	control    *control.Control
	accounts   *account.Accounts
	rules      *automation.Automations
	calendar   *calendars.Calendars
	statements *statement.Statements
	links      *link.Links
	webhooks   *webhook.Webhooks // receivers are on this machine
	clock      *clock.Fake
	vault      *auth.Vault
	sql        *sql.DB // the store's database
	postgres   bool

	dns   *dns   // the DNS that proves partners' host names
	files string // the address of files for messages: http://127.0.0.1:…
	cast
	owner atomic.Pointer[owner] // owns the sessions; nil: no node owns them
	media []byte                // the content of every reply's file; nil: the networks no longer have the file
	calls http.Handler          // the API, served at the address of the pages; nil: no API
	away  atomic.Bool           // true: the server closes the connection of each request, and does not execute the request

	written func() // called before each part of an answer; nil: nothing is called
}

// cast contains the accounts and users in a world's database, and the key that seals its secrets.
type cast struct {
	dataKey       []byte
	partner       puntuale.PartnerID // Agenzia Aurora
	client        puntuale.ClientID  // Studio Bianchi
	key           string             // the API key of the client
	pages         string             // the beginning of the addresses of the client's pages, such as "/c/1"
	other         puntuale.ClientID  // another client of the partner: Officina Verdi
	foreignClient puntuale.ClientID  // a client of another partner

	// Users of the partner and of the client, by role.
	partners, clients map[puntuale.Role]puntuale.UserID
	foreignOwner      puntuale.UserID // the user with the role owner in foreignClient
	foreignPartner    puntuale.UserID // the owner of its partner
}

// pushKey is the installation's public key for Web Push: 65 bytes. No test signs with the key.
var pushKey = base64.RawURLEncoding.EncodeToString(append([]byte{4}, make([]byte, 64)...))

// password is the password of all users.
const password = "una frase che nessuno indovina"

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldAt(t, "")
}

// newWorldAt creates a world whose service has a public address.
func newWorldAt(t testing.TB, public string) *world {
	t.Helper()
	seeded(t)
	db := storetest.SQLite(t)
	if err := os.WriteFile(filepath.Join(db.Config.Data, "puntuale.db"), seed.file, 0o600); err != nil {
		t.Fatal(err)
	}
	people := seed.cast
	people.partners, people.clients = maps.Clone(people.partners), maps.Clone(people.clients)
	db.Config.Public = public
	w := openWorld(t, db, db.Open(t), people, public)
	w.serve()
	return w
}

// newWorldOn creates a world with a public address on a given database.
func newWorldOn(t testing.TB, db *storetest.Database, public string) *world {
	t.Helper()
	w := openWorld(t, db, db.Open(t), newCast(), public)
	w.populate()
	w.serve()
	return w
}

// seed is a SQLite file with a world's people. Tests copy this file, because hashing the passwords takes long.
var seed struct {
	once sync.Once
	file []byte
	cast cast
}

// seeded creates the seed at the first call.
func seeded(t testing.TB) {
	t.Helper()
	seed.once.Do(func() {
		db := storetest.SQLite(t)
		st, err := store.Open(context.Background(), db.Config)
		if err != nil {
			t.Fatal(err)
		}
		w := openWorld(t, db, st, newCast(), "")
		w.populate()
		w.must(st.Close())
		seed.cast = w.cast
		seed.file, err = os.ReadFile(filepath.Join(db.Config.Data, "puntuale.db"))
		w.must(err)
	})
	if seed.file == nil {
		t.Fatal("the world's people could not be made, see the first failure")
	}
}

func newCast() cast {
	c := cast{dataKey: make([]byte, auth.DataKeySize)}
	_, _ = rand.Read(c.dataKey)
	return c
}

// openWorld creates a world on a store that already contains these people.
func openWorld(t testing.TB, db *storetest.Database, st *store.Store, people cast, public string) *world {
	t.Helper()
	w := &world{t: t, dns: &dns{}, store: st, clock: db.Clock, sql: db.SQL, postgres: db.Postgres, cast: people}
	w.vault, _ = auth.NewVault(w.dataKey)
	files := media.UploadedSource{Next: filesOf(t, w.clock, &w.files), Files: func(client puntuale.ClientID) media.FileReader { return w.store.Sent(client) }}
	mark := func(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string {
		return fmt.Sprint(client, session, chat, id)
	}
	taker := intake.New(intake.Config{
		Store: w.store, MessageMark: mark, Clock: w.clock, Logger: slog.New(slog.DiscardHandler), Tap: w.vault.ReadTap,
		Answer: func(ctx context.Context, m puntuale.TakenMessage, f booking.FoundAnswer) error {
			return w.control.Answer(ctx, m, f)
		},
	})
	w.control = control.New(control.Config{Files: files, Opener: w, Take: taker.Take, Tenants: w.store, Devices: w.store, Maintenance: w.store, Clock: w.clock, Sandbox: true, PushKey: func(context.Context) (string, error) { return pushKey, nil }, Vault: w.vault, Public: public, PlainGateways: true,
		Links: func(s puntuale.Session) bool {
			o := w.owner.Load()
			return s.Sandbox || s.Type != puntuale.Socket || o != nil && o.numbers != nil
		}, Wakeup: w.wake})
	w.rules = automation.New(automation.Config{Control: w.control, Tenants: w.store, Hooks: w.store, Vault: w.vault, Clock: w.clock})
	w.calendar = calendars.New(calendars.Config{Control: w.control, Tenants: w.store, Vault: w.vault, Clock: w.clock,
		Refuses: func(context.Context, string) puntuale.ReasonCode { return "" }})
	w.links = link.New(w.store.Links, w.clock)
	w.statements = statement.New(statement.Config{Tenants: w.store, Maintenance: w.store, Budgets: w.store, Clock: w.clock})
	w.store.PriceMessages(w.statements.Priced, w.statements.Currency())
	w.accounts = account.New(account.Config{Control: w.control, Tenants: w.store, Partners: w.store, Clock: w.clock, Wakeup: w.wake, Sandbox: true, Vault: w.vault,
		SignIn: w.store, Public: public, Resolver: w.dns, Currency: w.statements.Currency()})
	receivers := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w.webhooks = webhook.New(webhook.Config{Tenants: w.store, Vault: w.vault, Clock: w.clock, Public: "https://puntuale.example",
		Chatwoot: chatwoot.New(chatwoot.Config{HTTP: media.WebhookTransport(receivers, nil)}), Caller: delivery.NewCaller(delivery.CallerConfig{
			Clock: w.clock, Allow: receivers,
			Unseal: func(h *puntuale.Webhook, sealed []byte) ([]byte, error) {
				return w.vault.Open(puntuale.SealedWebhook, h.SealPlace(), sealed)
			},
		})})
	return w
}

// populate creates the world's people.
func (w *world) populate() {
	w.t.Helper()
	ctx := context.Background()
	partner := w.newPartner("Agenzia Aurora", "agenzia@example.com")
	w.partner = partner.ID()
	created, err := partner.CreateClient(ctx, account.NewClient{Name: "Studio Bianchi", Email: "studio@example.com", Password: password, Phone: "+39 011 765 4321", Type: "baby"}, control.Once[account.CreatedClient]{})
	w.must(err)
	w.client, w.key, w.pages = created.ID, created.Key, "/c/"+created.ID.String()
	other, err := partner.CreateClient(ctx, account.NewClient{Name: "Officina Verdi", Email: "verdi@example.com", Password: password, Phone: "+39 02 1234567", Type: "test"}, control.Once[account.CreatedClient]{})
	w.must(err)
	w.other = other.ID
	free := puntuale.ConsentFree // tests of campaigns then need no consent
	_, err = w.store.Tenant(w.client).UpdateSettings(ctx, puntuale.SettingsPatch{Consent: &free})
	w.must(err)
	far := w.newPartner("Altra Agenzia", "altra@example.com")
	strange, err := far.CreateClient(ctx, account.NewClient{Name: "Estraneo", Email: "estraneo@example.com", Password: password, Phone: "+39 06 1234567"}, control.Once[account.CreatedClient]{})
	w.must(err)
	w.foreignClient = strange.ID
	team, err := far.TeamOf(ctx, w.foreignClient.String())
	w.must(err)
	w.foreignOwner = w.users(team, nil)[puntuale.Owner]
	w.foreignPartner = w.users(far.Team(), nil)[puntuale.Owner]
	w.partners = w.users(partner.Team(), map[string]string{"staff": "Marta Neri", "reader": "Luca Blu"})
	team, err = partner.TeamOf(ctx, w.client.String())
	w.must(err)
	w.clients = w.users(team, map[string]string{"staff": "Anna Bianchi", "reader": "Paolo Grigi"})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newPartner(name, email string) *account.Partner {
	w.t.Helper()
	_, key, err := w.accounts.CreatePartner(context.Background(), account.NewPartner{Name: name, Email: email, Password: password})
	w.must(err)
	caller, err := w.control.Authenticate(context.Background(), key)
	w.must(err)
	p, err := w.accounts.Partner(caller)
	w.must(err)
	return p
}

// users adds users to a team, and returns all the team's users by role.
func (w *world) users(team *account.Team, more map[string]string) map[puntuale.Role]puntuale.UserID {
	w.t.Helper()
	for _, role := range slices.Sorted(maps.Keys(more)) {
		name := more[role]
		w.letIn(team, account.NewUser{Email: storetest.Unique(role) + "@example.com", Name: name, Role: role})
	}
	all, err := team.Users(context.Background())
	w.must(err)
	by := map[puntuale.Role]puntuale.UserID{}
	for _, u := range all {
		by[u.Role] = u.ID
	}
	return by
}

// letIn invites a user, and sets the common password with the invitation.
func (w *world) letIn(team *account.Team, r account.NewUser) puntuale.User {
	w.t.Helper()
	u, invitation, err := team.Invite(context.Background(), r)
	w.must(err)
	_, err = w.accounts.Join(context.Background(), invitation.Secret, password)
	w.must(err)
	return u
}

// serve starts the server at w.base.
func (w *world) serve() { w.serveBehind(nil) }

// serveBehind starts the server with these trusted proxies; nil means the default.
func (w *world) serveBehind(proxies httpkit.Proxies) {
	w.t.Helper()
	w.serveAs(page.Config{Proxies: proxies})
}

// serveAs starts the server with these settings in addition to the world's own.
func (w *world) serveAs(cfg page.Config) {
	w.t.Helper()
	cfg.Control, cfg.Accounts, cfg.Webhooks, cfg.Now = w.control, w.accounts, w.webhooks, w.clock.Now
	cfg.Automations, cfg.Calendars, cfg.Statements, cfg.Links = w.rules, w.calendar, w.statements, w.links
	cfg.Logger = slog.New(slog.NewTextHandler(testWriter{w.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pages, err := web.New(cfg)
	w.must(err)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.away.Load() {
			panic(http.ErrAbortHandler)
		}
		if w.calls != nil && !page.Takes(r) {
			w.calls.ServeHTTP(rw, r)
			return
		}
		if w.written != nil {
			rw = &observedWriter{rw, w.written}
		}
		pages.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	w.base = server.URL
}

// observedWriter calls a function before it writes a part of an answer.
type observedWriter struct {
	http.ResponseWriter
	before func()
}

func (w *observedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *observedWriter) Write(p []byte) (int, error) {
	w.before()
	return w.ResponseWriter.Write(p) //nolint:wrapcheck // the type replaces the wrapped writer
}

// testWriter writes log lines of level warning and above to the test's log. Most tests write no such lines.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Client returns the tenant of the client's API key. Tests use the tenant to prepare data for pages.
func (w *world) Client() *control.Client {
	w.t.Helper()
	caller, err := w.control.Authenticate(context.Background(), w.key)
	w.must(err)
	c, err := caller.Client()
	w.must(err)
	return c
}

// person returns a user as a signed-in person of package account.
func (w *world) person(user puntuale.UserID) *account.Person {
	w.t.Helper()
	u, _, err := w.store.UserByID(context.Background(), user)
	w.must(err)
	p, err := w.accounts.Person(context.Background(), user, u.Stamp)
	w.must(err)
	return p
}

// ticket returns an address that signs a user in, once.
func (w *world) ticket(user puntuale.UserID) string {
	w.t.Helper()
	text, err := w.accounts.Ticket(context.Background(), puntuale.UnfinishedTicket, user)
	w.must(err)
	return text
}

// visitor is a browser without a screen. It stores cookies, and follows no redirects.
type visitor struct {
	w         *world
	http      *http.Client
	language  string
	forwarded string // the address that a proxy reports; "": there is no proxy
}

// uncompressed is the transport of visitors. It requests pages without compression, because compressing a page takes
// longer than rendering it.
var uncompressed = &http.Transport{DisableCompression: true}

// visitor signs a user in. For the user 0 it returns a visitor without a sign-in. The pages are in Italian.
func (w *world) visitor(user puntuale.UserID) *visitor {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	w.must(err)
	v := &visitor{w: w, language: "it", http: &http.Client{Jar: jar, Transport: uncompressed, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if user != 0 {
		if r := v.post("/ticket", url.Values{"t": {w.ticket(user)}}); r.status != http.StatusSeeOther {
			w.t.Fatalf("sign in user %d: %d %s", user, r.status, r.body)
		}
	}
	return v
}

// answer is the response to a request.
type answer struct {
	status int
	body   string
	header http.Header
}

// The method to returns the address of a redirect.
func (a answer) to() string { return a.header.Get("Location") }

func (v *visitor) get(path string) answer { return v.do(http.MethodGet, path, nil, nil) }

func (v *visitor) post(path string, form url.Values) answer {
	return v.do(http.MethodPost, path, form, nil)
}

// htmx posts a form in the way of htmx.
func (v *visitor) htmx(path string, form url.Values) answer {
	return v.do(http.MethodPost, path, form, http.Header{"Hx-Request": {"true"}})
}

func (v *visitor) do(method, path string, form url.Values, header http.Header) answer {
	v.w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	return v.request(method, path, body, header)
}

// send posts a body unchanged.
func (v *visitor) send(path, body string, header http.Header) answer {
	v.w.t.Helper()
	return v.request(http.MethodPost, path, strings.NewReader(body), header)
}

func (v *visitor) request(method, path string, body io.Reader, header http.Header) answer {
	v.w.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, v.w.base+path, body)
	v.w.must(err)
	r.Header.Set("Accept-Language", v.language)
	if v.forwarded != "" {
		r.Header.Set("X-Forwarded-For", v.forwarded)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, values := range header {
		r.Header[name] = values
		if name == "Host" {
			r.Host = values[0]
		}
	}
	response, err := v.http.Do(r)
	v.w.must(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	v.w.must(err)
	return answer{response.StatusCode, string(content), response.Header}
}

var update = flag.Bool("update", false, "write the golden pages anew")

// golden compares a page with testdata/golden/NAME.html. Each tag is on its own line.
func golden(t testing.TB, name, html string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".html")
	got := tidy(html)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./internal/web -run %s -update writes it)", err, t.Name())
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is another page (-want +got):\n%s", file, diff)
	}
}

var (
	hashed   = regexp.MustCompile(`(/static/[a-z-]+)\.[0-9a-f]{12}\.`)
	requests = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
)

// tidy makes pages comparable. It removes hashes, request ids, the drawings of icons, and the head, which is the same
// on all pages.
func tidy(html string) string {
	html = without(html, "<head>", "</head>")
	html = without(html, `<svg class="icon`, "</svg>") // a page has hundreds of icons, and a regular expression would take a second
	html = hashed.ReplaceAllString(html, "$1.HASH.")
	html = requests.ReplaceAllString(html, "REQUEST")
	html = strings.ReplaceAll(html, "><", ">\n<")
	return html + "\n"
}

// without empties elements: it removes everything between each opening tag and the next end tag.
func without(html, opening, end string) string {
	var b strings.Builder
	for {
		from := strings.Index(html, opening)
		if from < 0 {
			break
		}
		tag, stop := strings.IndexByte(html[from:], '>'), strings.Index(html[from:], end)
		if tag < 0 || stop < tag {
			break
		}
		b.WriteString(html[:from+tag+1] + end)
		html = html[from+stop+len(end):]
	}
	return b.String() + html
}
