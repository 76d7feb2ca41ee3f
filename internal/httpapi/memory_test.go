package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpapi"
	"puntuale/internal/store/storetest"
)

// readings counts how often starts read the store.
type readings struct {
	puntuale.Operator
	n *atomic.Int64
}

type readTenant struct {
	puntuale.Tenant
	n *atomic.Int64
}

func (r readings) Principal(ctx context.Context, hash puntuale.KeyHash, now time.Time) (puntuale.Principal, error) {
	r.n.Add(1)
	return r.Operator.Principal(ctx, hash, now)
}

func (r readings) Tenant(id puntuale.ClientID) puntuale.Tenant {
	return readTenant{r.Operator.Tenant(id), r.n}
}

func (r readTenant) StartInfo(ctx context.Context, id puntuale.SequenceID) (puntuale.Sequence, puntuale.Session, error) {
	r.n.Add(1)
	return r.Tenant.StartInfo(ctx, id)
}

// twin returns another server on the same database.
func (s *service) twin() *service {
	s.t.Helper()
	other := *s
	store := s.db.Open(s.t)
	other.control = control.New(control.Config{Tenants: store, Devices: store, Maintenance: store, Clock: s.clock, Vault: testVault(s.t), Keep: puntuale.Retention{Months: 24}})
	other.accounts = account.New(account.Config{Control: other.control, Tenants: store, Partners: store, Clock: s.clock, Vault: testVault(s.t)})
	var err error
	other.handler, err = httpapi.New(httpapi.Config{Control: other.control, Accounts: other.accounts, Now: s.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	return &other
}

// The starts of a busy client are planned from memory. If another server changes data, the next start uses the changed
// data.
func TestStartsFromMemory(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reads atomic.Int64 // how often this test's database was read
			s := newService(t, options{sandbox: true, driver: driver, operator: func(o puntuale.Operator) puntuale.Operator { return readings{o, &reads} }})
			for name, c := range memoryCases {
				t.Run(name, func(t *testing.T) { // these tests do not run in parallel, because reads are counted
					own := *s
					own.t = t
					changedElsewhere(t, &own, &reads, c)
				})
			}
		})
	}
}

// memoryCase is a change, and the expected answer to the next start.
type memoryCase struct {
	change func(s *service, a clientAccount, sequence string)
	body   string // the body of the start; "": a valid body
	status int
	says   string // a text that the stored message or the refusal must contain
}

const memoryPhone = "+393331234567"

var memoryCases = map[string]memoryCase{
	"nothing": {func(*service, clientAccount, string) {}, "", 200, "Ciao Ada"},
	"sequence": {func(s *service, a clientAccount, id string) {
		s.must(nil, "PUT", "/api/sequences/"+id, a.Key, `{"name":"P","steps":[{"text":"Salve {{nome}}","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
	}, "", 200, "Salve Ada"},
	"a new field": {func(s *service, a clientAccount, id string) {
		s.must(nil, "PUT", "/api/sequences/"+id, a.Key, `{"name":"P","steps":[{"text":"{{altro}}","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
	}, "", 422, "body.altro"},
	"sequence deleted": {func(s *service, a clientAccount, id string) {
		s.must(nil, "DELETE", "/api/sequences/"+id+"?pending=keep", a.Key, "")
	}, "", 404, "sequence"},
	"template": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "PUT", "/api/templates/"+s.template(a), a.Key, `{"name":"saluto","text":"Ehi {{nome}}"}`)
	}, "", 200, "Ehi Ada"},
	"key revoked": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "DELETE", "/api/client/"+a.ID+"/keys/"+s.keyID(a), s.partner, "")
	}, "", 401, "not valid"},
	"key revoked, and a body that cannot be read": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "DELETE", "/api/client/"+a.ID+"/keys/"+s.keyID(a), s.partner, "")
	}, "{", 401, "not valid"},
	"key revoked, and a body that is too large": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "DELETE", "/api/client/"+a.ID+"/keys/"+s.keyID(a), s.partner, "")
	}, `{"x":"` + strings.Repeat("x", 2<<20) + `"}`, 401, "not valid"},
	"key revoked, and a faulty call": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "DELETE", "/api/client/"+a.ID+"/keys/"+s.keyID(a), s.partner, "")
	}, `{"phone":"abc"}`, 401, "not valid"},
	"key rotated": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "POST", "/api/client/"+a.ID+"/keys/"+s.keyID(a)+"/rotate", s.partner, `{"grace":0}`)
	}, "", 401, "not valid"},
	"client suspended": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"suspended":true}`)
	}, "", 403, "suspended"},
	"client expired": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"expiration_date":"2026-11-19"}`)
	}, "", 403, "expired"},
	"client deleted": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "DELETE", "/api/client/"+a.ID, s.partner, "")
	}, "", 401, "not valid"},
	"client's name": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"name":"Studio Verdi"}`)
	}, "", 200, "Studio Verdi"},
	"cap reached": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"daily_api_cap":0}`)
	}, "", 429, "cap"},
	"cap reached, and the key revoked": {func(s *service, a clientAccount, _ string) {
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"daily_api_cap":0}`)
		s.must(nil, "DELETE", "/api/client/"+a.ID+"/keys/"+s.keyID(a), s.partner, "")
	}, "", 401, "not valid"},
	"session deleted": {func(s *service, a clientAccount, id string) {
		var created struct {
			ID string `json:"id"`
		}
		s.must(&created, "POST", "/api/sessions", a.Key, `{"name":"altra","connection_type":"Socket","sandbox":true}`)
		s.must(nil, "PUT", "/api/sequences/"+id, a.Key, `{"name":"P","id_sessione":"`+created.ID+`","steps":[{"text":"Salve {{nome}}","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
		s.must(nil, "POST", "/api/start/"+id, a.Key, `{"phone":"`+memoryPhone+`","nome":"Ada"}`)
		s.must(nil, "DELETE", "/api/sessions/"+created.ID+"?pending=cancel", a.Key, "")
	}, "", 200, "Salve Ada"},
}

func changedElsewhere(t *testing.T, s *service, reads *atomic.Int64, c memoryCase) {
	t.Helper()
	a := s.newAccount(strings.ReplaceAll(strings.ReplaceAll(t.Name(), "/", "."), " ", "")+"@x.it", "full")
	step := `{"text":"Ciao {{nome}}","timing":{"anchor":"start","offset":{"amount":0}}}`
	if strings.HasSuffix(t.Name(), "/template") {
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"saluto","text":"Ciao {{nome}}"}`)
		step = `{"template":"saluto","timing":{"anchor":"start","offset":{"amount":0}}}`
	}
	id := s.newSequence(a.Key, step)
	good := `{"phone":"` + memoryPhone + `","nome":"Ada"}`
	start := func(body string, header ...string) response {
		return s.call("POST", "/api/start/"+id, a.Key, body, header...)
	}
	for i := 0; ; i++ { // repeat until a start is planned from memory, without reading the store
		before := reads.Load()
		if r := start(good); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if reads.Load() == before {
			break
		}
		if i > 2 {
			t.Fatal("every start reads what it is planned from")
		}
	}
	start(good, "Idempotency-Key", "k")
	other := s.twin()
	c.change(other, a, id)
	if c.status == 401 { // the key is not valid now, so even a repeated call must not get the stored answer
		if r := start(good, "Idempotency-Key", "k"); r.status != 401 {
			t.Errorf("a repeat: %d %s", r.status, r.body)
		}
	}
	body := c.body
	if body == "" {
		body = good
	}
	counted := s.counted(a)
	r := start(body)
	if r.status != c.status {
		t.Fatalf("%d %s, want %d", r.status, r.body, c.status)
	}
	if c.status != 200 {
		if !strings.Contains(r.body, c.says) {
			t.Errorf("refused with %s, want %q", r.body, c.says)
		}
		if now := s.counted(a); now != counted {
			t.Errorf("%d calls counted, before it was refused %d", now, counted)
		}
		return
	}
	var begun started
	if err := json.Unmarshal([]byte(r.body), &begun); err != nil {
		t.Fatal(err)
	}
	d := s.details(a.Key, begun.ID...)[0]
	if !strings.Contains(d.Contenuto+d.Cliente, c.says) {
		t.Errorf("%+v, want %q", d, c.says)
	}
	if n := s.count("select count(*) from message m join session s on s.id = m.session_id where m.id = " + begun.ID[0] + " and s.deleted_at = 0"); n != 1 {
		t.Error("the message is not in a session that is there")
	}
	before := reads.Load()
	s.clock.Advance(2 * time.Second)
	if start(good); reads.Load() == before {
		t.Error("memory does not end")
	}
}

func (s *service) template(a clientAccount) string {
	s.t.Helper()
	var all struct {
		Templates []struct {
			ID string `json:"id"`
		}
	}
	s.must(&all, "GET", "/api/templates", a.Key, "")
	return all.Templates[0].ID
}

func (s *service) keyID(a clientAccount) string {
	s.t.Helper()
	var all struct {
		Keys []struct {
			ID string `json:"id"`
		}
	}
	s.must(&all, "GET", "/api/client/"+a.ID+"/keys", s.partner, "")
	return all.Keys[0].ID
}

// counted returns how many calls of the client were counted.
func (s *service) counted(a clientAccount) int {
	return s.count("select coalesce(sum(used), 0) from api_usage where client_id = " + a.ID)
}
