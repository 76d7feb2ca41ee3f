package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
)

// someClients creates clients of the partner in every state.
func someClients(w *world) {
	ctx := context.Background()
	p := w.newPartnerHandle()
	set := func(id puntuale.ClientID, c account.ClientChange) {
		_, err := p.ChangeClient(ctx, id.String(), c)
		w.must(err)
	}
	for i, name := range []string{"Autoscuola Ferri", "Dottoressa Elena De Santis, studio medico e poliambulatorio specialistico", "Palestra Olimpia", "Ristorante Al Porto"} {
		created, err := p.CreateClient(ctx, account.NewClient{Name: name, Email: fmt.Sprintf("cliente%d@example.com", i), Password: password, Phone: "+39 02 1234567", Type: []string{"test", "baby", "full", "baby"}[i]}, control.Once[account.CreatedClient]{})
		w.must(err)
		switch i {
		case 1:
			set(created.ID, account.ClientChange{Expires: puntuale.Change[string]{Set: true, To: "2026-11-24"}})
		case 2:
			set(created.ID, account.ClientChange{Suspended: puntuale.Change[bool]{Set: true, To: true}})
		case 3:
			set(created.ID, account.ClientChange{Expires: puntuale.Change[string]{Set: true, To: "2026-11-10"}, CreditsAdd: puntuale.Change[int64]{Set: true, To: -2000}})
		}
	}
}

// newPartnerHandle returns the world's partner as its owner sees it.
func (w *world) newPartnerHandle() *account.Partner {
	w.t.Helper()
	p := w.person(w.partners[puntuale.Owner])
	partner, err := p.Partner()
	w.must(err)
	return partner
}

// TestPartnerWorks creates a client, finds it, adds credits, suspends it and resumes it. Then it creates a key, enters
// the dashboard, and deletes the client by typing its name. The audit log contains each of these actions.
func TestPartnerWorks(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		it := map[bool][]string{
			true:  {"Nuovo cliente", "Crea cliente", "Ho copiato tutto", "Sospendi", "Ripristina", "Elimina cliente"},
			false: {"New client", "Create client", "I have copied it", "Suspend", "Undo", "Delete client"},
		}[b.look.language == "it"]
		b.signIn(w.partners[puntuale.Owner])
		b.press(it[0])
		b.reads(it[1])
		b.fill("name", "Nuova Bottega", "phone", "+39 333 1112223", "email", "bottega")
		b.press(it[1])
		b.until(`document.activeElement?.name === "email" && document.querySelector("#f-email-fault")`)
		if got := evaluate[string](b, `document.querySelector("[name=name]").value`); got != "Nuova Bottega" {
			t.Errorf("what was typed became %q", got)
		}
		b.check("faulty")
		b.fill("email", "bottega@example.com")
		b.press(it[1])
		b.reads("ck_")
		b.check("created")
		b.press(it[2])
		b.until(`location.pathname.match(/^\/partner\/clients\/\d+$/)`)
		here := evaluate[string](b, "location.pathname")
		b.fill("credits_add", "50")
		b.click(`form[action$="/credits"] button`)
		b.reads("150")
		b.press(it[3])
		b.until(`document.querySelector(".toast-box form")`)
		b.check("suspended")
		b.press(it[4])
		b.until(`document.querySelector("form[action$='/suspend']")`)
		b.open("/partner")
		b.fill("q", "bottega")
		b.until(`document.querySelectorAll("#clients tbody tr").length === 1 && location.search.includes("bottega")`)
		b.check("found")
		b.open(here)
		b.press(it[5])
		b.fill("confirm", "Bottega")
		b.click("dialog[open] .btn-danger")
		b.until(`document.querySelector("dialog[open] .fault")`)
		b.check("not-deleted")
		b.fill("confirm", "Nuova Bottega")
		b.click("dialog[open] .btn-danger")
		b.until(`location.pathname === "/partner"`)
		b.reads("Nuova Bottega")
		b.open("/partner/audit")
		b.check("audit")
		if n := evaluate[int](b, `document.querySelectorAll("tbody tr").length`); n != 6 {
			t.Errorf("the audit log has %d rows, want signed in, created, credits, suspended, resumed, deleted", n)
		}
	})
}

// TestEntering enters a client's dashboard, checks that the page names the client, and leaves the dashboard. The audit
// logs of the partner and of the client contain an entry.
func TestEntering(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.partners[puntuale.Staff])
		b.open(w.pages)
		b.check("ask")
		b.click(`main form[action$="/enter"] button`)
		b.until(`location.pathname === "` + w.pages + `"`)
		b.until(`document.querySelector(".place-entered")`)
		b.check("inside")
		b.click(".place-entered button")
		b.until(`location.pathname === "/partner"`)
		for _, log := range []string{w.visitor(w.partners[puntuale.Owner]).get("/partner/audit").body, w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/audit").body} {
			if !strings.Contains(log, "Ingresso come cliente") {
				t.Error("a log does not say who entered")
			}
		}
	})
}

// TestAccountFaults: without scripts, a refused form is shown again as a page, with all typed values and each fault at
// its field.
func TestAccountFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	r := v.post("/partner/clients/new", url.Values{"name": {" "}, "email": {"senza"}, "phone": {""}, "password": {""}, "account_type": {"gigante"}})
	if r.status != http.StatusUnprocessableEntity {
		t.Errorf("%d", r.status)
	}
	golden(t, "account-faults", r.body)
	r = v.post("/partner/clients/"+w.client.String()+"/edit", url.Values{"name": {"Studio Bianchi"}, "phone": {"+39 011 765 4321"}, "profile": {puntuale.ProfileYearly}, "credits": {"molti"},
		"refill_period": {puntuale.RefillYearly}, "daily_api_cap": {"-1"}, "expiration_date": {"domani"}, "timezone": {"Marte"}, "region": {"Italia"}, "holidays": {"2026-12-24\nNatale"}})
	if r.status != http.StatusUnprocessableEntity || strings.Count(r.body, `class="fault"`) != 6 {
		t.Errorf("%d, %d faults", r.status, strings.Count(r.body, `class="fault"`))
	}
	if r := v.htmx("/partner/clients/new", url.Values{"name": {"x"}}); r.status != http.StatusUnprocessableEntity || strings.Contains(r.body, "<html") || !strings.HasPrefix(r.body, "<form") {
		t.Errorf("to htmx: %d %.80s", r.status, r.body)
	}
}

// TestAccountChange: a person changes a client's account with its form. A value that the form does not contain, such as
// the credits after a refill, does not change.
func TestAccountChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Staff])
	before, err := w.newPartnerHandle().Account(context.Background(), w.client.String())
	w.must(err)
	r := v.post("/partner/clients/"+w.client.String()+"/edit", url.Values{"name": {"Studio Bianchi e Figli"}, "phone": {before.Phone}, "profile": {before.Profile}, "credits": {"2000"},
		"refill_period": {before.Refill}, "daily_api_cap": {""}, "expiration_date": {"2027-03-01"}, "timezone": {"Europe/London"}, "region": {"IT"}, "active_features": {"webhook\ncsv"}, "holidays": {"2026-12-24"}})
	if r.status != http.StatusSeeOther || r.to() != "/partner/clients/"+w.client.String() {
		t.Fatalf("%d %s", r.status, r.to())
	}
	after, err := w.newPartnerHandle().Account(context.Background(), w.client.String())
	w.must(err)
	if after.Name != "Studio Bianchi e Figli" || after.Cap != nil || after.Expires.String() != "2027-03-01" || after.Zone != "Europe/London" || len(after.Features) != 2 || len(after.Closed) != 1 ||
		*after.Credits != 2000 || after.RefillTo != before.RefillTo || after.RefillAt.IsZero() {
		t.Errorf("became %+v", after)
	}
}

// TestExpiryInThePast: the page asks for confirmation of a last day in the past. Before the confirmation nothing
// changes, and no typed value is lost.
func TestExpiryInThePast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Staff])
	edit := "/partner/clients/" + w.client.String() + "/edit"
	typed := formOf(mainOf(v.get(edit).body))
	typed.Set("name", "Studio Bianchi e Figli")
	typed["holidays"] = []string{"2026-12-24", "", "2026-12-31"}
	for day, asks := range map[string]bool{"2026-11-19": true, "2026-11-20": false} { // today may be the last day of service, so it needs no confirmation
		typed.Set("expiration_date", day)
		typed.Set("version", formOf(mainOf(v.get(edit).body)).Get("version")) // one day of this loop is stored and changes the version, so read the version again
		r := v.htmx(edit, typed)
		if asked := r.status == http.StatusUnprocessableEntity && strings.Contains(r.body, `name="past"`); asked != asks {
			t.Errorf("%s: asks %t, status %d", day, asked, r.status)
		}
	}
	typed.Set("expiration_date", "2026-11-01")
	typed.Set("version", formOf(mainOf(v.get(edit).body)).Get("version"))
	r := v.post(edit, typed)
	again := formOf(mainOf(r.body))
	if r.status != http.StatusUnprocessableEntity || again.Get("name") != "Studio Bianchi e Figli" || again.Get("expiration_date") != "2026-11-01" ||
		!slices.Equal(again["holidays"], []string{"2026-12-24", "2026-12-31", ""}) || again.Has("past") {
		t.Fatalf("%d %v", r.status, again)
	}
	account := func() puntuale.Client {
		c, err := w.newPartnerHandle().Account(context.Background(), w.client.String())
		w.must(err)
		return c
	}
	if got := account().Expires.String(); got != "2026-11-20" {
		t.Errorf("before the answer the last day became %s", got)
	}
	again.Set("past", "on")
	if r := v.post(edit, again); r.status != http.StatusSeeOther {
		t.Fatalf("answered: %d", r.status)
	}
	if c := account(); c.Expires.String() != "2026-11-01" || len(c.Closed) != 2 {
		t.Errorf("became %s, closed %v", c.Expires, c.Closed)
	}
	// A text that is not a date is shown again as it was typed.
	again.Set("expiration_date", "domani")
	again["holidays"] = []string{"24/12/2026", "Natale"}
	r = v.post(edit, again)
	if got := formOf(mainOf(r.body)); got.Get("expiration_date") != "domani" || !slices.Contains(got["holidays"], "Natale") || strings.Contains(r.body, `type="date" value="domani"`) {
		t.Errorf("%d %v", r.status, got)
	}
}

// TestAccountFormInBrowser: a person chooses the time zone from a list while typing, and adds a field for a holiday. A
// last day in the past asks for confirmation.
func TestAccountFormInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.partners[puntuale.Owner])
		b.open("/partner/clients/" + w.client.String() + "/edit")
		if n := evaluate[int](b, `document.querySelector("[name=timezone]").list?.options.length ?? 0`); n < 50 {
			t.Errorf("%d zones are suggested", n)
		}
		b.click("[data-more]")
		if n := evaluate[int](b, `document.querySelectorAll("[name=holidays]").length`); n != 2 {
			t.Errorf("%d fields for days, want one more", n)
		}
		evaluate[bool](b, `(document.querySelectorAll("[name=holidays]").forEach((f, i) => { f.value = "2026-12-2" + (4 + i); }), true)`)
		b.check("days")
		b.fill("expiration_date", "2026-11-01")
		b.click(`form[action$="/edit"] button[type=submit]`)
		b.until(`document.querySelector("[name=past]") && document.activeElement?.name === "expiration_date"`)
		b.check("asks")
		if n := evaluate[int](b, `[...document.querySelectorAll("[name=holidays]")].filter((f) => f.value).length`); n != 2 {
			t.Errorf("%d days are left of two", n)
		}
		b.click("[name=past]")
		b.click(`form[action$="/edit"] button[type=submit]`)
		b.until(`location.pathname.endsWith("/clients/` + w.client.String() + `")`)
		b.check("expired")
	})
}

// TestUsers invites a user and removes the user. A removed user loses access immediately.
func TestUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	r := v.post(w.pages+"/users/new", url.Values{"email": {"nuova@example.com"}, "name": {"Nuova"}, "role": {"reader"}})
	link := linkIn(r.body)
	if r.status != http.StatusOK || link == "" {
		t.Fatalf("%d", r.status)
	}
	them := w.visitor(0)
	if r := them.post("/invitation", url.Values{"t": {link}, "password": {"tramonto sul lago"}}); r.status != http.StatusSeeOther || r.to() != w.pages {
		t.Fatalf("come in: %d %s", r.status, r.to())
	}
	team := w.users(w.accounts.TeamOf(w.Client()), nil)
	if r := them.get(w.pages + "/users"); r.status != http.StatusForbidden {
		t.Errorf("a reader among users: %d", r.status)
	}
	path := fmt.Sprintf("%s/users/%d", w.pages, team[puntuale.Reader])
	if r := v.post(path, url.Values{"name": {"Nuova"}, "role": {"staff"}}); r.status != http.StatusSeeOther {
		t.Errorf("a new role: %d", r.status)
	}
	if r := v.post(path+"/delete", nil); r.status != http.StatusSeeOther {
		t.Errorf("delete: %d", r.status)
	}
	if r := them.get(w.pages); r.status != http.StatusSeeOther || !strings.HasPrefix(r.to(), "/login") {
		t.Errorf("who was shown out gets %d %s", r.status, r.to())
	}
	last := fmt.Sprintf("%s/users/%d/delete", w.pages, w.clients[puntuale.Owner])
	if r := v.post(last, nil); r.status != http.StatusConflict || !strings.Contains(r.body, "almeno una persona deve restare titolare") && !strings.Contains(r.body, "Almeno una persona deve restare titolare") {
		t.Errorf("the last owner: %d", r.status)
	}
}

// TestWhiteLabel: clients see the partner's name, logo and colour, and never the product's. This also holds at the
// partner's own host name.
func TestWhiteLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.newPartnerHandle().SetBrand(context.Background(), account.BrandChange{Name: "Messaggi Aurora", Colour: "#ffee00", Host: "msg.aurora.example", Logo: onePixel}))
	w.must(w.accounts.ConfirmHost(context.Background(), w.partner, "msg.aurora.example"))
	v := w.visitor(w.clients[puntuale.Owner])
	pages := []string{v.get(w.pages).body, v.get("/me").body, v.get(w.pages + "/missing").body, w.visitor(0).get("/p/agenzia-aurora").body}
	r := w.visitor(0).do(http.MethodGet, "/login", nil, http.Header{"Host": {"msg.aurora.example"}})
	pages = append(pages, r.body)
	out := w.visitor(w.clients[puntuale.Owner])
	out.post("/logout", nil)
	pages = append(pages, out.get("/login").body)
	for i, page := range pages {
		if strings.Contains(page, "Puntuale") || !strings.Contains(page, "Messaggi Aurora") || !strings.Contains(page, "/logo\"") || !strings.Contains(page, "/style.css\"") {
			t.Errorf("page %d is not the partner's", i)
		}
	}
	style := between(pages[0], `href="/brand/`, `"`)
	css := v.get("/brand/" + strings.TrimSuffix(style, "logo") + "style.css")
	if css.status != http.StatusOK || !strings.Contains(css.body, "--brand:#") || strings.Contains(css.body, "--brand:#ffee00") || !strings.Contains(css.body, "--brand-dark:#ffee00") {
		t.Errorf("the style: %d %s", css.status, css.body)
	}
	if r := v.get("/brand/1/other/style.css"); r.status != http.StatusNotFound {
		t.Errorf("an old address: %d", r.status)
	}
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	inside, _, _ := strings.Cut(rest, to)
	return inside
}

// onePixel is a PNG of one pixel.
var onePixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")
