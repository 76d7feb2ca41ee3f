package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control/request"
)

// TestAuditTargets: whatever names the object of an action, the entry is written, and is of bounded length.
func TestAuditTargets(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		p := w.person(w.clients[puntuale.Staff])
		for _, target := range []string{"a\x00b", "c\xffd", strings.Repeat("è", 100_000)} {
			w.must(p.Note(context.Background(), w.client, "file.delete", target, netip.Addr{}))
		}
		entries, _, err := w.Client().Audit(context.Background(), request.Page{})
		w.must(err)
		for i, want := range []string{strings.Repeat("è", 4000), "c\ufffdd", "ab"} {
			if entries[i].Target != want {
				t.Errorf("target %.20q of %d bytes, want %.20q of %d", entries[i].Target, len(entries[i].Target), want, len(want))
			}
		}
	})
}

// TestAuditNames: the log shows who changed which thing. It shows the present names of things, and also their
// identifiers. For a deleted thing it shows the name at the deletion, or only the identifier.
func TestAuditNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := w.everything(w.client)
	note := func(user puntuale.UserID, client puntuale.ClientID, action, target string) {
		p := w.person(user)
		w.must(p.Note(context.Background(), client, action, target, netip.Addr{}))
	}
	id := w.client.String()
	staff := w.clients[puntuale.Staff]
	note(staff, w.client, "sequence.update", has["sequences"])
	note(staff, w.client, "template.update", has["templates"])
	note(staff, w.client, "session.pace", has["sessions"])
	note(staff, w.client, "session.delete", "987654 Vecchio sportello")
	note(staff, w.client, "message.cancel", has["messages"])
	note(staff, w.client, "message.all", "cancel pending 12")
	note(staff, w.client, "blacklist.import", "7")
	note(staff, w.client, "blacklist.add", has["blacklist"])
	note(staff, w.client, "key.rotate", has["keys"])
	note(staff, w.client, "sequence.update", "987655")
	note(w.partners[puntuale.Staff], w.client, "sequence.start", has["sequences"])
	note(w.partners[puntuale.Staff], w.client, "client.enter", "Studio Bianchi")
	note(w.partners[puntuale.Staff], 0, "client.change", id)
	note(w.partners[puntuale.Staff], 0, "client.credits", "987656 50")
	note(w.partners[puntuale.Staff], 0, "client.delete", "987656 Bottega chiusa")

	staffMail := mailOf(w, staff)
	client := w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/audit").body
	for what, part := range map[string]string{
		"sequence":         `<a href="` + w.pages + `/sequences/` + has["sequences"] + `">Promemoria visita ` + id + `</a>`,
		"its id":           `<span class="audit-what" title="ID ` + has["sequences"] + `">`,
		"a number":         ">+39\u00a0333\u00a0000\u00a01122<",
		"template":         `/templates/` + has["templates"] + `">conferma</a>`,
		"session":          `/sessions/` + has["sessions"] + `">Simulata</a>`,
		"deleted session":  `Vecchio sportello`,
		"message":          `/messages/` + has["messages"] + `">Promemoria visita ` + id + `</a>`,
		"many messages":    `12 invii annullati`,
		"numbers":          `7 numeri`,
		"key":              `gestionale`,
		"client's name":    `<span class="list-below">Studio Bianchi</span>`,
		"what is gone":     `<span class="list-below">ID 987655</span>`,
		"user":             `<span>Anna Bianchi</span>`,
		"the user's mail":  `<span class="list-below">` + staffMail + `</span>`,
		"partner's person": `dall’agenzia`,
	} {
		if !strings.Contains(tidy(client), part) && !strings.Contains(client, part) {
			t.Errorf("the client's log lacks the %s: %s", what, part)
		}
	}
	partner := w.visitor(w.partners[puntuale.Owner]).get("/partner/audit").body
	for what, part := range map[string]string{
		"client": `<a href="/partner/clients/` + id + `">Studio Bianchi</a>`, "deleted client": "Bottega chiusa", "sequence": "Promemoria visita " + id,
		"partner's user": "<span>Marta Neri</span>", "client's user": "<span>Anna Bianchi</span>", "where": "<span>Studio Bianchi</span>", "entered": "Entrando come cliente",
	} {
		if !strings.Contains(partner, part) {
			t.Errorf("the partner's log lacks the %s: %s", what, part)
		}
	}

	if n := strings.Count(partner, `<span class="audit-what" title="ID 987656">Bottega chiusa</span>`); n != 2 || !strings.Contains(partner, `<span class="list-below">crediti: 50</span>`) {
		t.Errorf("the deleted client is named in %d rows, want its deletion and what was done before", n)
	}
	for _, log := range []string{client, partner} {
		if bare := regexp.MustCompile(`<span class="list-below">[0-9]+</span>`).FindString(log); bare != "" {
			t.Errorf("the log shows a bare number: %s", bare)
		}
	}

	// A thing that was not deleted in a dashboard is shown by its identifier. Another client's thing is not shown at
	// all.
	person := w.person(w.clients[puntuale.Owner])
	c, err := person.Client(context.Background(), id)
	w.must(err)
	w.must(c.DeleteTemplate(context.Background(), has["templates"]))
	theirs := w.everything(w.foreignClient)
	note(staff, w.client, "sequence.update", theirs["sequences"])
	client = w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/audit").body
	if strings.Contains(client, "Promemoria visita "+w.foreignClient.String()) {
		t.Error("the log names another client's sequence")
	}
	if strings.Contains(client, ">conferma<") || !strings.Contains(client, has["templates"]) {
		t.Error("a deleted template is not told by its identifier")
	}
}

// TestAuditOfDeleted: the log shows the name of a thing that was deleted in a dashboard.
func TestAuditOfDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := w.everything(w.client)
	v := w.visitor(w.clients[puntuale.Owner])
	if r := v.post(w.pages+"/templates/"+has["templates"]+"/delete", url.Values{}); r.status >= 400 {
		t.Fatalf("delete: %d %s", r.status, r.body)
	}
	if log := v.get(w.pages + "/audit").body; !strings.Contains(log, "conferma") || !strings.Contains(log, has["templates"]) {
		t.Error("the log does not name the deleted template")
	}
}

func mailOf(w *world, user puntuale.UserID) string {
	p := w.person(user)
	return p.User().Email
}

// TestFailedSignIns: the log shows failed attempts with their address. Only the dashboard's owners and their partner
// see these entries. Even very many attempts make a bounded number of entries.
func TestFailedSignIns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	codes := func() []string { _, codes := setUpSecond(t, w.visitor(w.clients[puntuale.Owner])); return codes }()
	v := w.visitor(0)
	v.forwarded = "203.0.113.7"
	for range 3 {
		v.post("/login", login("studio@example.com", "sbagliata"))
	}
	v.post("/login", login("studio@example.com", password))
	v.post("/login/code", url.Values{"code": {"000000"}})
	if r := v.post("/login/code", url.Values{"code": {codes[0]}}); r.to() != w.pages {
		t.Fatalf("%d %s", r.status, r.to())
	}
	v.post("/login", login("nessuno@example.com", "sbagliata"))
	for who, log := range map[string]string{"the client": v.get(w.pages + "/audit").body, "its partner": w.visitor(w.partners[puntuale.Owner]).get("/partner/audit").body} {
		for _, want := range []string{"Accesso non riuscito", "Password sbagliata · 3 tentativi", "Codice sbagliato", "203.0.113.7", "studio@example.com"} {
			if !strings.Contains(log, want) {
				t.Errorf("%s is not told %q", who, want)
			}
		}
		if n := strings.Count(log, "Accesso non riuscito"); n != 2 {
			t.Errorf("%s sees %d entries of failures, want 2", who, n)
		}
	}
	strange := w.visitor(w.foreignOwner)
	for _, path := range []string{"/c/" + w.foreignClient.String() + "/audit", "/c/" + w.other.String() + "/audit"} {
		if r := strange.get(path); strings.Contains(r.body, "203.0.113.7") || strings.Contains(r.body, "non riuscito") {
			t.Errorf("a stranger reads it at %s", path)
		}
	}
	w.clock.Advance(2 * puntuale.ForgetTries) // the limit of entries is per day, so the failures above do not count towards it
	u, _, err := w.store.UserByID(context.Background(), w.clients[puntuale.Owner])
	w.must(err)
	for i := range 100 {
		w.must(w.store.Fail(context.Background(), "x", []puntuale.SignInFailure{{User: u, What: "password", Address: fmt.Sprint("198.51.100.", i)}}, w.clock.Now()))
	}
	log := w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/audit")
	if n := strings.Count(log.body, "Accesso non riuscito"); log.status != http.StatusOK || n != 2+puntuale.MaxFailures+1 || !strings.Contains(log.body, "80 tentativi") {
		t.Errorf("100 addresses make %d entries", n)
	}
}
