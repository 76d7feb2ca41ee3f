package hook_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	"puntuale/internal/hook"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/store/storetest"
)

// TestMain makes hashes of passwords cheap.
func TestMain(m *testing.M) {
	auth.CheapForTests()
	os.Exit(m.Run())
}

// world contains the hooks of one client, on a real store.
type world struct {
	t       *testing.T
	clock   *clock.Fake
	handler http.Handler
	rules   *automation.Rules
	log     bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := storetest.SQLite(t)
	st := db.Open(t)
	vault, err := auth.NewVault(make([]byte, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: db.Clock}
	desk := control.New(control.Config{Tenants: st, Devices: st, Maintenance: st, Clock: db.Clock, Sandbox: true, Vault: vault})
	accounts := account.New(account.Config{Control: desk, Tenants: st, Partners: st, Clock: db.Clock, Sandbox: true, Vault: vault})
	_, key, err := accounts.CreatePartner(t.Context(), account.NewPartner{Name: "A", Email: "a@example.com", Password: "una frase lunga 42"})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := desk.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	partner, err := accounts.Partner(caller)
	if err != nil {
		t.Fatal(err)
	}
	made, err := partner.CreateClient(t.Context(), account.NewClient{Name: "B", Email: "b@example.com", Password: "x", Phone: "+390212345678"}, control.Once[account.CreatedClient]{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := desk.OfNetwork(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	all := automation.New(automation.Config{Control: desk, Tenants: st, Hooks: st, Vault: vault, Clock: db.Clock})
	w.rules = all.OfClient(client, "")
	w.handler = hook.New(hook.Config{Automations: all, Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Now: db.Clock.Now, Admit: admission.Limits{
		Gate: admission.NewGate(admission.GateConfig{Seats: 4, LongestWait: time.Second, Now: db.Clock.Now}), Budget: admission.NewMemoryBudget(1<<20, func(string) {}),
		UnknownCallers: admission.NewRateLimiter[admission.CallerKey](1, 3, db.Clock.Now)}})
	return w
}

// rule creates a rule with a hook, and returns its path and id.
func (w *world) rule(active bool) (path, id string) {
	w.t.Helper()
	made, err := w.rules.Create(w.t.Context(), automation.Draft{Automation: puntuale.Automation{Name: "R", Active: active,
		Trigger: puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "tel", "nome": "chi.nome"}},
		Actions: []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"x"}}}}}, control.Once[automation.Rule]{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.Path, made.ID.String()
}

// unread fails the test if the request's body is read before there is an answer. After the answer, the server may read
// the rest of the body.
type unread struct {
	t   *testing.T
	rec *httptest.ResponseRecorder
}

func (u *unread) Read([]byte) (int, error) {
	if u.rec.Body.Len() == 0 {
		u.t.Error("the body was read")
	}
	return 0, errors.New("unread")
}

func (w *world) send(method, path string, body io.Reader, header ...string) (int, string, http.Header) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, body)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	if u, ok := body.(*unread); ok {
		u.rec = rec
	}
	w.handler.ServeHTTP(rec, r)
	return rec.Code, strings.TrimSpace(rec.Body.String()), rec.Header()
}

func (w *world) expect(path, body string, status int, contains string, header ...string) {
	w.t.Helper()
	if got, answer, _ := w.send("POST", path, strings.NewReader(body), header...); got != status || !strings.Contains(answer, contains) {
		w.t.Errorf("%.80q: %d %s, want %d %s", body, got, answer, status, contains)
	}
}

// TestStrangers: callers without the secret learn nothing, and their bodies are not read. The number of guesses is
// limited.
func TestStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, id := w.rule(true)
	other, _, err := auth.NewHookSecret()
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]bool{}
	for _, wrong := range []string{"/hooks/", "/hooks/x", "/hooks/" + other} {
		status, answer, _ := w.send("POST", wrong, &unread{t: t}, "X-Request-Id", "1")
		if status != http.StatusNotFound {
			t.Errorf("%s: %d %s", wrong, status, answer)
		}
		answers[answer] = true
	}
	if len(answers) != 1 {
		t.Errorf("answers differ: %v", answers)
	}
	if status, _, header := w.send("POST", "/hooks/"+other, &unread{t: t}); status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("the fourth guess: %d", status)
	}
	if status, _, header := w.send("GET", path, nil); status != http.StatusMethodNotAllowed || header.Get("Allow") != "POST" {
		t.Errorf("GET: %d", status)
	}
	w.expect(path, `{"tel":"333 1234567"}`, http.StatusOK, `{"accepted":true}`)
	rotated, err := w.rules.Rotate(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.expect(path, `{"tel":"333 1234567"}`, http.StatusNotFound, "no such path")
	w.expect(rotated.Path, `{"tel":"333 1234568"}`, http.StatusOK, `{"accepted":true}`)
	if strings.Contains(w.log.String(), "hk_") {
		t.Errorf("the log has an address: %s", w.log.String())
	}
}

// TestCalls: the hook accepts some calls, recognises repeats, and refuses other calls. It stores the last payload.
func TestCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, id := w.rule(true)
	const json = `{"tel":"333 1234567","chi":{"nome":"Anna"}}`
	w.expect(path, json, http.StatusOK, `{"accepted":true}`)
	w.expect(path, json, http.StatusOK, `{"accepted":true,"repeated":true}`)
	w.expect(path, json, http.StatusOK, `{"accepted":true}`, "Idempotency-Key", "1")
	w.expect(path, `{"tel":"333 7654321"}`, http.StatusOK, `"repeated":true`, "Idempotency-Key", "1")
	w.expect(path, "tel=%2B39+333+7654321&chi[nome]=Ugo", http.StatusOK, `{"accepted":true}`, "Content-Type", "application/x-www-form-urlencoded")
	last, err := w.rules.LastPayload(t.Context(), id)
	if err != nil || len(last.Members) != 2 || last.Members[0].Path != "chi.nome" || last.Members[0].Text != "Ugo" {
		t.Errorf("the last payload: %+v, %v", last, err)
	}
	w.clock.Advance(time.Second)
	w.expect(path, `{"chi":{"nome":"Anna"}}`, http.StatusOK, `{"accepted":false,"errors":[{"location":"body"`)
	w.expect(path, `{"tel":"nessuno"}`, http.StatusOK, `{"accepted":false,"errors":[{"location":"body"`)
	w.expect(path, `{"tel":"120363043211234567@g.us"}`, http.StatusOK, `{"accepted":false,"errors":[{"location":"body"`)
	w.expect(path, ``, http.StatusBadRequest, `"location":"body"`)
	w.expect(path, `{"tel":`, http.StatusBadRequest, `"location":"body"`)
	// A call with faults does not use its key up: the mended call acts. The same faulty body is a repeat.
	w.expect(path, `{"tel":"nessuno"}`, http.StatusOK, `"accepted":false`, "Idempotency-Key", "2")
	w.expect(path, `{"tel":"nessuno"}`, http.StatusOK, `"repeated":true`, "Idempotency-Key", "2")
	w.expect(path, `{"tel":"333 7654321"}`, http.StatusOK, `{"accepted":true}`, "Idempotency-Key", "2")
	w.expect(path, `{"tel":"333 7654321"}`, http.StatusOK, `"repeated":true`, "Idempotency-Key", "2")
	w.clock.Advance(time.Second)
	w.expect(path, json, http.StatusBadRequest, `header.Idempotency-Key`, "Idempotency-Key", strings.Repeat("k", 256))
	w.expect(path, `{"tel":"`+strings.Repeat("x", puntuale.MaxHookBody)+`"}`, http.StatusRequestEntityTooLarge, "too_large")
	w.clock.Advance(25 * time.Hour)
	w.expect(path, json, http.StatusOK, `{"accepted":true}`)

	off, _ := w.rule(false)
	w.expect(off, json, http.StatusOK, `{"accepted":false,"errors":[{"location":"automation"`)
}

// TestPace: a hook accepts ten calls a second. Other hooks are not affected.
func TestPace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, _ := w.rule(true)
	other, _ := w.rule(true)
	for range puntuale.MaxHookRate {
		w.expect(path, `{"tel":"333 1234567"}`, http.StatusOK, `"accepted":true`)
	}
	if status, _, header := w.send("POST", path, &unread{t: t}); status != http.StatusTooManyRequests || header.Get("Retry-After") != "1" {
		t.Errorf("the eleventh: %d, Retry-After %q", status, header.Get("Retry-After"))
	}
	w.expect(other, `{"tel":"333 1234567"}`, http.StatusOK, `"accepted":true`)
	w.clock.Advance(time.Second)
	w.expect(path, `{"tel":"333 1234567"}`, http.StatusOK, `"accepted":true`)
}
