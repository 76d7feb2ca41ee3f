package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale/internal/control/account"
)

// presentation is a way to send a key.
type presentation struct {
	name string
	put  func(r *http.Request, key string)
}

func inQuery(r *http.Request, key string) {
	query := r.URL.Query()
	query.Add("api_key", key)
	r.URL.RawQuery = query.Encode()
}

func asBearer(r *http.Request, key string) { r.Header.Add("Authorization", "Bearer "+key) }

var presentations = []presentation{
	{"bearer", asBearer},
	{"query", inQuery},
	{"both", func(r *http.Request, key string) { asBearer(r, key); inQuery(r, key) }},
	{"twice", func(r *http.Request, key string) { asBearer(r, key); asBearer(r, key) }},
}

// side returns who an operation is for: a partner, a client, a device, either (a client or a partner), or anybody.
func side(id string) string {
	op := operations[id]
	switch {
	case op.partner:
		return "partner"
	case id == "linkDevice":
		return "anybody"
	case strings.HasPrefix(op.path, "/device"):
		return "device"
	case strings.HasPrefix(op.path, "/api/webhooks"), id == "search", id == "getStatement", id == "getResults", id == "makeLinkingPage", id == "endLinkingPage":
		return "either"
	}
	return "client"
}

// TestEveryKeyOnEveryOperation calls every operation with every kind of key, in each way in which a key can be sent. The
// parameters and bodies are plausible, missing or nonsense. No answer is a 5xx. A key that is not valid gets 401, and a
// valid key of a wrong kind gets 403.
func TestEveryKeyOnEveryOperation(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		own, expired, suspended := newTenant(s, "own@x", "+393330000001"), newTenant(s, "expired@x", "+393330000002"), newTenant(s, "suspended@x", "+393330000003")
		_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
		if err != nil {
			t.Fatal(err)
		}
		var far, revoked struct {
			ID  string `json:"id"`
			Key string `json:"api_key"`
		}
		s.must(&far, "POST", "/api/client/create", rival, `{"name":"x","email":"far@x","password":"p","phone":"1"}`)
		s.must(&revoked, "POST", "/api/client/"+own.client+"/keys", s.partner, `{"name":"breve"}`)
		s.must(nil, "DELETE", "/api/client/"+own.client+"/keys/"+revoked.ID, s.partner, "")
		var hook struct{ Path string }
		s.must(&hook, "POST", "/api/automations/"+own.automation+"/rotate", own.key, "")
		secret := hook.Path[strings.LastIndex(hook.Path, "/")+1:]
		if len(secret) < 20 {
			t.Fatalf("the hook's secret is %q", secret)
		}
		s.sql(fmt.Sprintf(`update client set expires_at = %d where id = %s`, morning.Add(-time.Hour).UnixMicro(), expired.client))
		s.sql(`update client set suspended = 1 where id = ` + suspended.client)
		s.clock.Advance(2 * time.Second) // no account is remembered for longer than a second

		keys := []struct{ name, kind, key string }{ // kind "": the key is not valid
			{"no key", "", ""},
			{"nonsense", "", "x"},
			{"a key's beginning", "", own.key[:len(own.key)-1]},
			{"a key with a wrong end", "", own.key[:len(own.key)-1] + "%"},
			{"a long text", "", strings.Repeat("ck_", 1000)},
			{"odd characters", "", "è\u202e{{x}}';--"},
			{"a hook's secret", "", secret},
			{"a revoked key", "", revoked.Key},
			{"an unlinked device's token", "", own.ended},
			{"a partner's key", "partner", s.partner},
			{"another partner's key", "partner", rival},
			{"a client's key", "client", own.key},
			{"another partner's client's key", "client", far.Key},
			{"an expired client's key", "client", expired.key},
			{"a suspended client's key", "suspended", suspended.key},
			{"a device's token", "device", own.token},
		}
		shapes := []struct{ path, body string }{ // of a call; "": as the operation's row says
			{"", ""}, {"", "{}"}, {"x", `{"phone":[],"id":{},"name":7,"reports":[null],"url":3}`}, {"-1", "\xff{"}, {"9007199254740993", "null"},
		}
		statuses := map[int]int{}
		if raced || s.db.Postgres { // the answers are the same, so fewer calls are enough
			shapes = shapes[:3]
		}
		for n, id := range documented(t) {
			op, of := operations[id], side(id)
			for _, key := range keys {
				for i, shape := range shapes {
					for _, present := range presentations {
						mayRemove := op.last && (key.kind == of || of == "either")
						switch {
						case present.name != "bearer" && (i > 0 || n%8 > 0): // the same code reads the keys of all operations
							continue
						case mayRemove && (shape.path == "" || !strings.Contains(op.path, "{")): // other calls need these things
							continue
						}
						path, body := own.fill(op.path), own.fill(op.body)
						if shape.path != "" {
							path = nonsense(op.path, shape.path)
						}
						if i > 0 {
							body = shape.body
						}
						r := httptest.NewRequestWithContext(t.Context(), op.method, path, strings.NewReader(body))
						if key.name != "no key" {
							present.put(r, key.key)
						}
						a := s.send(r)
						statuses[a.status]++
						if a.status >= 500 || a.status >= 400 && a.header.Get("Content-Type") != "application/problem+json" {
							t.Errorf("%s, %s (%s), %s %s: %d %s", id, key.name, present.name, path, body, a.status, a.body)
						}
						want := 0 // any other answer
						switch {
						case of == "anybody":
						case key.kind == "":
							want = http.StatusUnauthorized
						case key.kind == "suspended", key.kind != of && (of != "either" || key.kind == "device"):
							want = http.StatusForbidden
						}
						if refused := a.status == 401 || a.status == 403; want != 0 && a.status != want || want == 0 && refused && key.name != "an expired client's key" {
							t.Errorf("%s with %s (%s): %d %s, want %d", id, key.name, present.name, a.status, a.body, want)
						}
					}
				}
			}
		}
		t.Log(statuses)
		s.must(nil, "GET", "/api/sequences", own.key, "") // the account is still there
	})
}

// nonsense replaces each parameter of a path, and each value of its query, by another text.
func nonsense(path, text string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	parts := strings.Split(u.Path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = text
		}
	}
	query := u.Query()
	for name := range query {
		query.Set(name, text)
	}
	return strings.Join(parts, "/") + "?" + query.Encode()
}
