package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// TestMovedTwiceIsOneRow: a moved message is one row of the list. Its history shows the earlier due time, and no page
// says that the message was resent.
func TestMovedTwiceIsOneRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.traffic().planned("+393331112223", "Ci vediamo domani", w.clock.Now().Add(24*time.Hour)).String()
	v := w.visitor(w.clients[puntuale.Staff])
	first := m
	for _, at := range []string{"10:00", "18:30"} {
		r := v.post(w.pages+"/messages/"+m+"/move", url.Values{"date": {"2026-12-04"}, "time": {at}})
		if r.status != http.StatusSeeOther {
			t.Fatalf("move: %d %s", r.status, r.body)
		}
		m = r.to()[strings.LastIndex(r.to(), "/")+1:]
	}
	if r := v.get(w.pages + "/messages/" + m); !strings.Contains(between(r.body, `id="toasts"`, "</form>"), "Il testo dice «domani»") || !strings.Contains(between(r.body, `<dialog id="move"`, "</dialog>"), "Il testo dice «domani»") {
		t.Error("nobody says that the text names its day")
	}
	list := inMain(v.get(w.pages + "/messages").body)
	if n := strings.Count(list, "<tr data-row"); n != 1 || !strings.Contains(list, "/messages/"+m+`"`) || !strings.Contains(list, "Spostato da ven 4 dic, 10:00") {
		t.Errorf("the list has %d rows: %s", n, list)
	}
	replaced := inMain(v.get(w.pages + "/messages?state=RESCHEDULED").body)
	if n := strings.Count(replaced, "<tr data-row"); n != 2 || strings.Count(replaced, ">Spostato</span>") != 2 {
		t.Errorf("the moved ones have %d rows: %s", n, replaced)
	}
	story := inMain(v.get(w.pages + "/messages/" + m).body)
	for _, want := range []string{"Spostato da ", " a ven 4 dic, 10:00", "Spostato da ven 4 dic, 10:00 a ven 4 dic, 18:30"} {
		if !strings.Contains(story, want) {
			t.Errorf("the story does not say %q: %s", want, story)
		}
	}
	old := inMain(v.get(w.pages + "/messages/" + first).body)
	if !strings.Contains(old, "Spostato a ven 4 dic, 10:00") {
		t.Errorf("the first one does not say where it was moved to: %s", old)
	}
	for _, page := range []string{list, replaced, story, old} {
		if strings.Contains(page, "nviato di nuovo") {
			t.Errorf("what was never sent is called sent again: %s", page)
		}
	}
	all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{})
	w.must(err)
	if len(all) != 3 {
		t.Errorf("the API lists %d messages, want all 3", len(all))
	}
}

// TestSuspendedIsToldSo: the owner of a suspended client sees that the client is suspended and who can help. The owner
// can sign out.
func TestSuspendedIsToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	partner := w.visitor(w.partners[puntuale.Owner])
	if r := partner.post("/partner/clients/"+w.client.String()+"/suspend", url.Values{}); r.status != http.StatusSeeOther {
		t.Fatal(r.status)
	}
	r := v.get(w.pages)
	if r.status != http.StatusForbidden {
		t.Errorf("status %d", r.status)
	}
	for _, want := range []string{"Account sospeso", "Agenzia Aurora", `action="/logout"`} {
		if !strings.Contains(inMain(r.body), want) {
			t.Errorf("the page does not say %q: %s", want, inMain(r.body))
		}
	}
	if strings.Contains(r.body, "Il tuo ruolo") || strings.Contains(inMain(r.body), `href="/"`) {
		t.Errorf("the page blames the role, or leads in a circle: %s", inMain(r.body))
	}
	if r := v.post("/logout", url.Values{}); r.status != http.StatusSeeOther {
		t.Errorf("sign out: %d", r.status)
	}
}

// TestDoorIsThePartners: a person who signed in on a partner's sign-in page gets the same page for the next sign-in.
func TestDoorIsThePartners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const signInPage = "/p/agenzia-aurora"
	v := w.visitor(0)
	enter := func(at string) {
		t.Helper()
		if r := v.post(at, url.Values{"email": {"studio@example.com"}, "password": {password}}); r.status != http.StatusSeeOther {
			t.Fatalf("sign in: %d %s", r.status, inMain(r.body))
		}
	}
	enter(signInPage)
	if r := v.post("/logout", url.Values{}); r.to() != signInPage {
		t.Errorf("signing out leads to %q", r.to())
	}
	if r := v.get("/"); r.to() != signInPage {
		t.Errorf("the front leads to %q", r.to())
	}
	enter(signInPage)
	w.clock.Advance(25 * time.Hour) // the visit has ended
	if r := v.get(w.pages + "/messages"); !strings.HasPrefix(r.to(), signInPage+"?next=") {
		t.Errorf("a visit that is over leads to %q", r.to())
	}
	enter("/login")
	if r := v.post("/logout", url.Values{}); r.to() != "/login" {
		t.Errorf("signing out of the plain page leads to %q", r.to())
	}
}

// TestTicketAgain: a person opens a used ticket again. In the same browser the link redirects to the first page. In
// another browser it redirects to the sign-in page.
func TestTicketAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ticket := url.Values{"t": {w.ticket(w.clients[puntuale.Owner])}}
	v := w.visitor(0)
	for range 2 {
		if r := v.post("/ticket", ticket); r.to() != w.pages {
			t.Errorf("the link leads to %q, %d", r.to(), r.status)
		}
	}
	if r := w.visitor(0).post("/ticket", ticket); !strings.Contains(r.body, `href="/login"`) || !strings.Contains(r.body, "non vale più") {
		t.Errorf("in another browser: %d %s", r.status, inMain(r.body))
	}
}
