package web_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
)

var linked = regexp.MustCompile(`/invitation\?t=([A-Z2-7]{52})`)

// linkIn returns the secret of the link on a page, or "" if the page has no link.
func linkIn(page string) string {
	found := linked.FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return found[1]
}

// TestInvitation: an invited person sets a password once, on a page with the partner's brand. A link is refused if it
// was replaced or revoked, or is too old. No page shows a password.
func TestInvitation(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	w.must(w.newPartnerHandle().SetBrand(context.Background(), account.BrandChange{Name: "Messaggi Aurora"}))
	v := w.visitor(w.partners[puntuale.Owner])
	made := v.post("/partner/users/new", url.Values{"email": {"nuova@example.com"}, "role": {"staff"}})
	first := linkIn(made.body)
	if made.status != http.StatusOK || !strings.Contains(made.body, "https://app.example/invitation?t="+first) || made.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d: the link is %q", made.status, first)
	}
	team, err := w.newPartnerHandle().Team().Users(context.Background())
	w.must(err)
	user := "/partner/users/" + team[len(team)-1].ID.String()
	if page := v.get("/partner/users").body; !strings.Contains(page, "Invito valido fino al") || linkIn(page) != "" {
		t.Error("the list does not say who was invited, or shows the link again")
	}
	spent := func(secret, why string) {
		t.Helper()
		nobody := w.visitor(0)
		get, post := nobody.get("/invitation?t="+secret), nobody.post("/invitation", url.Values{"t": {secret}, "password": {"tramonto sul lago"}})
		if get.status != http.StatusNotFound || post.status != http.StatusNotFound || !strings.Contains(get.body, "non vale più") {
			t.Errorf("%s: %d, %d", why, get.status, post.status)
		}
	}
	second := linkIn(v.post(user+"/invite", nil).body)
	spent(first, "replaced")
	spent("", "none")
	if r := v.post(user+"/uninvite", nil); r.status != http.StatusSeeOther {
		t.Errorf("revoke: %d", r.status)
	}
	spent(second, "revoked")
	late := linkIn(v.post(user+"/invite", nil).body)
	w.clock.Advance(7 * 24 * time.Hour)
	spent(late, "too old")
	v = w.visitor(w.partners[puntuale.Owner])
	link := linkIn(v.post(user+"/invite", nil).body)
	them := w.visitor(0)
	if r := them.post("/login", url.Values{"email": {"nuova@example.com"}, "password": {""}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("sign in before there is a password: %d", r.status)
	}
	if r := them.get("/invitation?t=" + link); r.status != http.StatusOK || !strings.Contains(r.body, "Messaggi Aurora") || strings.Contains(r.body, "Puntuale") || !strings.Contains(r.body, "nuova@example.com") {
		t.Errorf("the page is not the partner's: %d", r.status)
	}
	if r := them.post("/invitation", url.Values{"t": {link}, "password": {"corta"}}); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `id="f-password-fault"`) {
		t.Errorf("a weak password: %d", r.status)
	}
	if r := them.post("/invitation", url.Values{"t": {link}, "password": {"tramonto sul lago"}}); r.status != http.StatusSeeOther || r.to() != "/partner" {
		t.Fatalf("join: %d %s", r.status, r.to())
	}
	spent(link, "used")
	if r := w.visitor(0).post("/login", url.Values{"email": {"nuova@example.com"}, "password": {"tramonto sul lago"}}); r.status != http.StatusSeeOther {
		t.Errorf("sign in afterwards: %d", r.status)
	}
	log := v.get("/partner/audit").body
	for _, words := range []string{"Utente creato", "Link per la password creato", "Link per la password revocato", "Password scelta con un link"} {
		if !strings.Contains(log, words) {
			t.Errorf("the log does not say %q", words)
		}
	}
	if strings.Contains(log, link) {
		t.Error("the log has the link")
	}
}

// TestClientInvitation: if a client is created in the dashboard without a password, its user gets an invitation link.
// The API call that creates a client still requires a password.
func TestClientInvitation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Staff])
	form := url.Values{"name": {"Nuova Bottega"}, "phone": {"1"}, "email": {"bottega@example.com"}, "account_type": {"full"}}
	r := v.post("/partner/clients/new", form)
	link := linkIn(r.body)
	if r.status != http.StatusOK || link == "" {
		t.Fatalf("%d", r.status)
	}
	them := w.visitor(0)
	if r := them.post("/invitation", url.Values{"t": {link}, "password": {"tramonto sul lago"}}); r.status != http.StatusSeeOther || !strings.HasPrefix(r.to(), "/c/") {
		t.Errorf("join: %d %s", r.status, r.to())
	}
	form.Set("email", "altra-bottega@example.com")
	form.Set("password", "tramonto sul mare")
	if r := v.post("/partner/clients/new", form); r.status != http.StatusOK || linkIn(r.body) != "" || strings.Contains(r.body, "tramonto sul mare") {
		t.Errorf("with a password: %d, or it is shown", r.status)
	}
	_, err := w.newPartnerHandle().CreateClient(context.Background(), account.NewClient{Name: "x", Email: "x@example.com", Phone: "1"}, control.Once[account.CreatedClient]{})
	if puntuale.CodeOf(err) != puntuale.CodeInvalid {
		t.Errorf("a call without a password: %v", err)
	}
}

// TestFaultsTogether: the form of a client shows the faults that the page finds together with the faults that the
// service finds.
func TestFaultsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	r := v.post("/partner/clients/new", url.Values{"name": {" "}, "email": {"studio@example.com"}, "phone": {""}, "account_type": {"gigante"}})
	if n := strings.Count(r.body, `class="fault"`); r.status != http.StatusUnprocessableEntity || n != 4 || !strings.Contains(r.body, `id="f-email-fault"`) {
		t.Errorf("a new client: %d, %d faults", r.status, n)
	}
	edit := "/partner/clients/" + w.client.String() + "/edit"
	typed := formOf(mainOf(v.get(edit).body))
	for name, value := range map[string]string{"expiration_date": "2026-11-01", "credits": "molti", "region": "Italia", "quotas.users": "201", "quotas.keys": "tante"} {
		typed.Set(name, value)
	}
	r = v.post(edit, typed)
	if n := strings.Count(r.body, `class="fault"`); r.status != http.StatusUnprocessableEntity || n != 5 || !strings.Contains(r.body, `name="past"`) {
		t.Errorf("a changed one: %d, %d faults", r.status, n)
	}
}

// TestQuotaForm sets a client's limits. The limits also apply in the client's dashboard.
func TestQuotaForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	edit := "/partner/clients/" + w.client.String() + "/edit"
	save := func(sessions string) {
		t.Helper()
		typed := formOf(mainOf(v.get(edit).body))
		typed.Set("quotas.sessions", sessions)
		if r := v.post(edit, typed); r.status != http.StatusSeeOther {
			t.Fatalf("save: %d", r.status)
		}
	}
	save("1")
	client := w.visitor(w.clients[puntuale.Owner])
	number := url.Values{"name": {"Banco"}, "kind": {"sandbox"}}
	if r := client.post(w.pages+"/sessions", number); r.status != http.StatusConflict || !strings.Contains(r.body, "limite di 1 numeri") {
		t.Errorf("one more than the limit: %d", r.status)
	}
	save("")
	if got := formOf(mainOf(v.get(edit).body)).Get("quotas.sessions"); got != "10" {
		t.Errorf("an empty limit became %q", got)
	}
	if r := client.post(w.pages+"/sessions", number); r.status != http.StatusSeeOther {
		t.Errorf("within the limit: %d", r.status)
	}
}

// TestSuspendedClient: the page of a suspended client shows the last day of service. It names the kind of account once.
func TestSuspendedClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	v.language = "en"
	page := "/partner/clients/" + w.other.String()
	v.post(page+"/suspend", nil)
	html := mainOf(v.get(page).body)
	expires := between(html, "<dt>Expires</dt>", "</dd>")
	if strings.Contains(expires, "Suspended") || !strings.Contains(expires, "2026") || strings.Count(html, ">Trial<") != 1 {
		t.Errorf("expires: %s; %d rows say Trial", expires, strings.Count(html, ">Trial<"))
	}
}

var partnerKey = regexp.MustCompile(`pk_[A-Za-z0-9_-]+`)

// TestPartnerKeys: an owner in the partner's dashboard lists, creates, rotates and revokes the partner's keys.
func TestPartnerKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	r := v.post("/partner/keys", url.Values{"name": {"gestionale"}})
	made := partnerKey.FindString(r.body)
	if r.status != http.StatusOK || !w.works(made) || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d, the key %q does not work", r.status, made)
	}
	list := v.get("/partner/keys").body
	if strings.Contains(list, made) || !strings.Contains(list, "gestionale") {
		t.Error("the key is shown again, or missing")
	}
	ids := regexp.MustCompile(`/partner/keys/([0-9]+)/revoke`).FindAllStringSubmatch(list, -1)
	last := "/partner/keys/" + ids[len(ids)-1][1]
	next := partnerKey.FindString(v.post(last+"/rotate", nil).body)
	if !w.works(next) || !w.works(made) || next == made {
		t.Error("after a rotation one of the keys does not work")
	}
	w.clock.Advance(24*time.Hour + time.Second)
	if w.works(made) || !w.works(next) {
		t.Error("the grace does not end")
	}
	v = w.visitor(w.partners[puntuale.Owner])
	ids = regexp.MustCompile(`/partner/keys/([0-9]+)/revoke`).FindAllStringSubmatch(v.get("/partner/keys").body, -1)
	if r := v.post("/partner/keys/"+ids[len(ids)-1][1]+"/revoke", nil); r.status != http.StatusSeeOther || w.works(next) {
		t.Errorf("revoked: %d", r.status)
	}
	if r := v.post("/partner/keys/987654/revoke", nil); r.status != http.StatusNotFound {
		t.Errorf("a key that is not there: %d", r.status)
	}
	for _, role := range []puntuale.Role{puntuale.Reader, puntuale.Staff} {
		if r := w.visitor(w.partners[role]).get("/partner/keys"); r.status != http.StatusForbidden {
			t.Errorf("a partner's %s among keys: %d", role, r.status)
		}
	}
	log := v.get("/partner/audit").body
	for _, words := range []string{"Chiave creata", "Chiave sostituita", "Chiave revocata"} {
		if !strings.Contains(log, words) {
			t.Errorf("the log does not say %q", words)
		}
	}
}
