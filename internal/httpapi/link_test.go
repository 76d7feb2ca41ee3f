package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/account"
)

// linkView is a session in the API's answer.
type linkView struct {
	ID, State, Number, QR string
	Code                  string `json:"pairing_code"`
	Expires               string `json:"expires_at"`
	Detail                string `json:"state_detail"`
}

func (s *service) link(method, target, key, body string) (v linkView) {
	s.t.Helper()
	s.must(&v, method, target, key, body)
	return v
}

// becomes advances the clock second by second, until the session is in the state.
func (s *service) becomes(target, key, state string) (v linkView) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(2 * time.Millisecond) {
		if v = s.link("GET", target, key, ""); v.State == state {
			return v
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not within a minute %s: %+v", state, v)
		}
		s.clock.Advance(time.Second)
	}
}

// A sandbox session is online until it is unlinked. Afterwards it can be linked again, by a QR code or by a typed code.
func TestLinking(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "test")
		session := "/api/sessions/" + a.Session
		if v := s.link("GET", session, a.Key, ""); v.State != "online" || v.Number+v.QR+v.Code+v.Expires != "" {
			t.Errorf("as created: %+v", v)
		}
		if r := s.call("POST", session+"/pair", a.Key, `{"method":"qr"}`); r.status != 409 || !strings.Contains(r.body, "linked already") {
			t.Errorf("linked already: %d %s", r.status, r.body)
		}
		for range 2 { // the second call changes nothing, because the session is already unlinked
			if v := s.link("DELETE", session+"/pair", a.Key, ""); v.State != "unlinked" {
				t.Errorf("unlinked: %+v", v)
			}
		}
		v := s.link("POST", session+"/pair", a.Key, `{"method":"qr"}`)
		if v.State != "pairing" || !strings.HasPrefix(v.QR, "sandbox:"+a.Session+",") || v.Code != "" || v.Expires != "2026-11-20T09:30:03.123456Z" {
			t.Errorf("pairing: %+v", v)
		}
		for _, table := range []string{"session", "command"} {
			if found := s.contains(table, strings.Split(v.QR, ",")[1]); found {
				t.Errorf("%s holds the code", table)
			}
		}
		if strings.Contains(s.log.String(), strings.Split(v.QR, ",")[1]) {
			t.Error("the log holds the code")
		}
		next := s.link("POST", session+"/pair", a.Key, `{"method":"code","phone":3331234567}`)
		if next.State != "pairing" || next.QR != "" || len(next.Code) != 9 || next.Expires == "" {
			t.Errorf("pairing by a code: %+v", next)
		}
		if v := s.becomes(session, a.Key, "online"); v.Number != "+393331234567" || v.Code != "" || v.Expires != "" {
			t.Errorf("linked: %+v", v)
		}
		s.link("DELETE", session+"/pair", a.Key, "")
		s.link("POST", session+"/pair", a.Key, `{"method":"code","phone":"+393331239901"}`)
		if v := s.link("DELETE", session+"/pair", a.Key, ""); v.State != "unlinked" || v.Code != "" { // DELETE also ends a pairing
			t.Errorf("given up: %+v", v)
		}
		s.link("POST", session+"/pair", a.Key, `{"method":"code","phone":"+393331239901"}`)
		if v := s.becomes(session, a.Key, "unlinked"); v.Detail == "" {
			t.Errorf("a phone that never links: %+v", v)
		}
		if n := s.count("select count(*) from api_usage"); n != 0 {
			t.Errorf("%d days have counted calls", n)
		}
	})
}

// Faults are checked in this order: the account, the session, the request, the state of the session, and the node,
// which may not answer.
func TestLinkingRefused(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "test")
		session := "/api/sessions/" + a.Session
		for body, want := range map[string]string{
			``: "400", `{"method":7}`: "400", `[]`: "400",
			`{}`: "body.method", `{"method":null}`: "body.method", `{"method":"passkey"}`: "body.method",
			`{"method":"code"}`: "body.phone", `{"method":"code","phone":"abc"}`: "body.phone", `{"method":"code","phone":"123@g.us"}`: "body.phone",
			`{"method":"code","phone":1.5}`: "body.phone", `{"method":"qr","phone":"+393331234567"}`: "body.phone",
		} {
			r := s.call("POST", session+"/pair", a.Key, body)
			if fmt.Sprint(r.status) != want && (r.status != 422 || !strings.Contains(r.body, `"location":"`+want+`"`)) {
				t.Errorf("%s: %d %s, want %s", body, r.status, r.body, want)
			}
		}
		for _, phone := range []string{"333", "abc", "123@g.us"} {
			if r := s.call("POST", session+"/pair", a.Key, `{"method":"code","phone":"`+phone+`"}`); !strings.Contains(r.body, `"is not a valid phone number"`) {
				t.Errorf("%s: %d %s", phone, r.status, r.body)
			}
		}
		for _, method := range []string{"POST", "DELETE"} {
			if r := s.call(method, "/api/sessions/999/pair", a.Key, `{"method":"telepathy"}`); r.status != 404 {
				t.Errorf("%s of no session: %d %s", method, r.status, r.body)
			}
		}
		var real linkView
		s.must(&real, "POST", "/api/sessions", a.Key, `{"name":"Vera","connection_type":"Socket","sandbox":false}`)
		if real.State != "unlinked" {
			t.Errorf("a real number: %+v", real)
		}
		if r := s.call("POST", "/api/sessions/"+real.ID+"/pair", a.Key, `{"method":"qr"}`); r.status != 409 || !strings.Contains(r.body, "no connector") {
			t.Errorf("no connector: %d %s", r.status, r.body)
		}
		if v := s.link("DELETE", "/api/sessions/"+real.ID+"/pair", a.Key, ""); v.State != "unlinked" {
			t.Errorf("%+v", v)
		}
		if n := s.count("select count(*) from command"); n != 0 {
			t.Errorf("%d commands were stored", n)
		}
		s.link("DELETE", session+"/pair", a.Key, "")
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"expiration_date":"2026-11-19"}`)
		if r := s.call("POST", session+"/pair", a.Key, `{"method":"qr"}`); r.status != 403 {
			t.Errorf("an expired account: %d %s", r.status, r.body)
		}
		s.link("DELETE", session+"/pair", a.Key, "")
	})
}

// If no node carries out a command, the caller is informed in time. The command then expires, and no node carries it
// out later.
func TestLinkingUnanswered(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "test")
		s.owner.absent = true
		answered := make(chan response, 1)
		go func() { answered <- s.call("DELETE", "/api/sessions/"+a.Session+"/pair", a.Key, "") }()
		for {
			select {
			case r := <-answered:
				if r.status != 409 || !strings.Contains(r.body, `"busy"`) || r.header.Get("Retry-After") == "" {
					t.Errorf("%d %s", r.status, r.body)
				}
				if v := s.link("GET", "/api/sessions/"+a.Session, a.Key, ""); v.State != "online" {
					t.Errorf("%+v", v)
				}
				return
			case <-time.After(2 * time.Millisecond):
				s.clock.Advance(time.Second)
			}
		}
	})
}

// TestLinkOfNobody: some states are only correct while an owner updates them. A session without an owner does not show
// these states.
func TestLinkOfNobody(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "test")
		for state, want := range map[puntuale.LinkState]string{
			puntuale.LinkOnline: "connecting", puntuale.LinkPairing: "unlinked", puntuale.LinkLinked: "connecting", puntuale.LinkUnlinked: "unlinked",
		} {
			if _, err := s.db.SQL.Exec("update session set link = $1", int64(state)); err != nil {
				t.Fatal(err)
			}
			if v := s.link("GET", "/api/sessions/"+a.Session, a.Key, ""); v.State != want {
				t.Errorf("%v is shown as %s, want %s", state, v.State, want)
			}
		}
	})
}

func (s *service) count(query string) (n int) {
	s.t.Helper()
	if err := s.db.SQL.QueryRow(query).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// contains reports whether any value in a table contains a text.
func (s *service) contains(table, text string) bool {
	s.t.Helper()
	rows, err := s.db.SQL.Query("select * from " + table)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	found, seen := false, 0
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			s.t.Fatal(err)
		}
		for _, v := range values {
			found = found || strings.Contains(fmt.Sprintf("%s", *v.(*any)), text)
		}
		seen++
	}
	if err := rows.Err(); err != nil || seen == 0 {
		s.t.Fatalf("%d rows of %s, %v", seen, table, err)
	}
	return found
}

// The pending messages of an unlinked session wait until the session is linked again.
func TestUnlinkingKeepsMessages(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "test")
		var run started
		s.must(&run, "POST", "/api/start/"+s.newSequence(a.Key, stepNow+","+stepLater), a.Key, `{"phone":"3331234567","testo":"t"}`)
		if v := s.link("DELETE", "/api/sessions/"+a.Session+"/pair", a.Key, ""); v.State != "unlinked" {
			t.Errorf("%+v", v)
		}
		for _, d := range s.details(a.Key, run.ID...) {
			if d.Stato != "PENDING" || d.Risposta != "In attesa di invio" {
				t.Errorf("%+v", d)
			}
		}
	})
}

// A client, or its partner, makes a page with which somebody without an account links the number. The address is told
// once, and each new page ends the one before.
func TestLinkingPageCalls(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true, public: "https://app.example"}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "test"), s.newAccount("b@x", "test")
		own := "/api/sessions/" + a.Session
		type pageView struct {
			URL     string `json:"url"`
			Expires string `json:"expires_at"`
		}
		if r := s.call("POST", own+"/linking-page", a.Key, ""); r.status != 409 || !strings.Contains(r.body, "linked already") {
			t.Errorf("of a linked number: %d %s", r.status, r.body)
		}
		s.link("DELETE", own+"/pair", a.Key, "")
		seen := map[string]bool{}
		for _, key := range []string{a.Key, s.partner} {
			var made pageView
			s.must(&made, "POST", own+"/linking-page", key, "")
			code, ok := strings.CutPrefix(made.URL, "https://app.example/link/")
			if !ok || len(code) != 26 || seen[code] || made.Expires != "2026-11-21T09:30:00.123456Z" {
				t.Errorf("%+v", made)
			}
			seen[code] = true
			if s.contains("session", code) || s.contains("audit", code) || strings.Contains(s.log.String(), code) {
				t.Error("the code is stored, or in the log")
			}
			var session struct {
				Until string `json:"linking_page_until"`
			}
			s.must(&session, "GET", own, a.Key, "")
			if session.Until != made.Expires {
				t.Errorf("the session's page ends at %q", session.Until)
			}
			found, err := s.control.LinkingPage(t.Context(), code)
			if err != nil || !found.Open {
				t.Errorf("%+v, %v", found, err)
			}
			for range 2 { // the second call changes nothing
				s.must(nil, "DELETE", own+"/linking-page", key, "")
			}
			if _, err := s.control.LinkingPage(t.Context(), code); puntuale.CodeOf(err) != puntuale.CodeNotFound {
				t.Errorf("after its end: %v", err)
			}
		}
		if n := s.count("select count(*) from audit where who = 'api' and action in ('session.page', 'session.page_end')"); n != 6 {
			t.Errorf("%d entries in the audit log", n)
		}
		_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"POST", "DELETE"} {
			for _, call := range [][2]string{{own, b.Key}, {own, rival}, {"/api/sessions/999", a.Key}, {"/api/sessions/999", s.partner}, {"/api/sessions/x", a.Key}, {"/api/sessions/x", s.partner}} {
				if r := s.call(method, call[0]+"/linking-page", call[1], ""); r.status != 404 {
					t.Errorf("%s %s: %d %s", method, call, r.status, r.body)
				}
			}
		}
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"expiration_date":"2026-11-19"}`)
		for _, key := range []string{a.Key, s.partner} {
			if r := s.call("POST", own+"/linking-page", key, ""); r.status != 403 {
				t.Errorf("an expired account: %d %s", r.status, r.body)
			}
		}
	})
	s := newService(t, options{sandbox: true})
	a := s.newAccount("a@x", "test")
	s.link("DELETE", "/api/sessions/"+a.Session+"/pair", a.Key, "")
	if r := s.call("POST", "/api/sessions/"+a.Session+"/linking-page", a.Key, ""); r.status != 409 || !strings.Contains(r.body, "public-url") {
		t.Errorf("without an address: %d %s", r.status, r.body)
	}
}
