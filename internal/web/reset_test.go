package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/mail"
	"puntuale/internal/mail/mailtest"
)

// post is a mail server, and the mailer that sends a world's e-mails to this server.
type post struct {
	*mail.Mailer
	*mailtest.Server
	w *world
}

// mailing makes the world send e-mails. The service's address is https://app.example.
func (w *world) mailing() *post {
	w.t.Helper()
	w.accounts = account.New(account.Config{
		Control: w.control, Tenants: w.store, Partners: w.store, Clock: w.clock, Wakeup: func(puntuale.SessionID, time.Time) {}, Sandbox: true, Vault: w.vault,
		SignIn: w.store,
		Public: "https://app.example", Resolver: w.dns, Mails: w.store,
	})
	w.serve()
	p := &post{Server: mailtest.New(w.t, mailtest.Options{NoTLS: true, Open: true}), w: w}
	out, err := mail.ParseServer("smtp://127.0.0.1")
	w.must(err)
	p.Mailer, err = mail.New(mail.Config{
		Store: w.store, Letter: w.accounts.Letter, Server: out.WithDialer(p.Dial, nil), From: "no-reply@app.example", Observe: func(string) {}, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
	})
	w.must(err)
	return p
}

// delivered sends the waiting e-mails, and returns the newly received ones. before is the number of e-mails that were
// received earlier.
func (p *post) delivered(before int) []mailtest.Received {
	p.w.t.Helper()
	p.w.must(p.Round(context.Background()))
	return p.Received()[before:]
}

var resetLink = regexp.MustCompile(`https://app\.example(/reset\?t=([A-Z2-7]{52}))`)

// resetIn returns the secret in an e-mail's link.
func (p *post) resetIn(r mailtest.Received) string {
	p.w.t.Helper()
	found := resetLink.FindStringSubmatch(r.Text)
	if found == nil {
		p.w.t.Fatalf("no link in\n%s", r.Text)
	}
	return found[2]
}

// TestReset: somebody who forgot the password requests a link, and sets a new password with it. The link works once.
// All visits and pending steps of the user end.
func TestReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.mailing()
	before := w.visitor(w.clients[puntuale.Owner])
	them := w.visitor(0)
	if page := them.get("/login").body; !strings.Contains(page, `href="/forgot"`) {
		t.Error("the sign-in page offers no link")
	}
	them.language = "en" // the user has chosen no language, so the e-mail is in the page's language
	ask := func(path, email string) answer {
		t.Helper()
		return them.do(http.MethodPost, path, url.Values{"email": {email}}, http.Header{"Host": {"evil.example"}})
	}
	if r := ask("/forgot", "STUDIO@example.com"); r.status != http.StatusOK || !strings.Contains(r.body, "Look at your mail") {
		t.Fatalf("ask: %d %s", r.status, r.body)
	}
	all := p.delivered(0)
	if len(all) != 1 || all[0].To != "studio@example.com" || all[0].Subject != "A new password for Agenzia Aurora" || strings.Contains(all[0].HTML, "evil") {
		t.Fatalf("delivered %+v", all)
	}
	first := p.resetIn(all[0])
	w.clock.Advance(time.Minute)
	ask("/forgot", "studio@example.com")
	second := p.resetIn(p.delivered(1)[0])
	if r := them.get("/reset?t=" + first); r.status != http.StatusOK || !strings.Contains(r.body, "studio@example.com") || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page: %d %v", r.status, r.header)
	}
	if r := them.post("/reset", url.Values{"t": {first}, "password": {"corta"}}); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `id="f-password-fault"`) {
		t.Errorf("a weak password: %d", r.status)
	}
	const fresh = "tramonto sul lago"
	if r := them.post("/reset", url.Values{"t": {first}, "password": {fresh}}); r.status != http.StatusSeeOther || r.to() != w.pages {
		t.Fatalf("reset: %d %s", r.status, r.to())
	}
	spent := func(secret string) {
		t.Helper()
		nobody := w.visitor(0)
		get, post := nobody.get("/reset?t="+secret), nobody.post("/reset", url.Values{"t": {secret}, "password": {"alba sul mare lontano"}})
		if get.status != http.StatusNotFound || post.status != http.StatusNotFound || !strings.Contains(get.body, "non vale più") {
			t.Errorf("a link that is over: %d, %d", get.status, post.status)
		}
	}
	spent(first)
	spent(second) // setting the password ended the second link
	spent("")
	spent(w.ticket(w.clients[puntuale.Owner])) // a ticket is not a link for a reset
	if r := before.get(w.pages); r.status != http.StatusSeeOther {
		t.Errorf("what was open before: %d", r.status)
	}
	for typed, want := range map[string]int{password: http.StatusUnprocessableEntity, fresh: http.StatusSeeOther} {
		if r := w.visitor(0).post("/login", url.Values{"email": {"studio@example.com"}, "password": {typed}}); r.status != want {
			t.Errorf("sign in: %d, want %d", r.status, want)
		}
	}
	if log := w.visitor(w.partners[puntuale.Owner]).get("/partner/audit").body; !strings.Contains(log, "Password reimpostata con un link per e-mail") || strings.Contains(log, first) {
		t.Error("the log does not say it, or has the link")
	}
	w.clock.Advance(time.Hour)
	ask("/forgot", "studio@example.com")
	late := p.resetIn(p.delivered(2)[0])
	w.clock.Advance(time.Hour)
	spent(late)
}

// TestResetTellsNothing: the answer does not show whether a user with this e-mail address exists. Attempts are limited
// in the same way for both cases.
func TestResetTellsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.mailing()
	answers := map[string][]string{}
	for _, email := range []string{"studio@example.com", "nessuno@example.com"} {
		v := w.visitor(0)
		v.forwarded = map[string]string{"studio@example.com": "198.51.100.1", "nessuno@example.com": "198.51.100.2"}[email]
		for range 5 {
			r := v.post("/forgot", url.Values{"email": {email}})
			answers[email] = append(answers[email], http.StatusText(r.status)+strings.ReplaceAll(tidy(r.body), email, ""))
		}
	}
	for i, a := range answers["studio@example.com"] {
		if a != answers["nessuno@example.com"][i] {
			t.Errorf("attempt %d:\n%s\n---\n%s", i, a, answers["nessuno@example.com"][i])
		}
	}
	if last := answers["nessuno@example.com"][4]; !strings.HasPrefix(last, http.StatusText(http.StatusTooManyRequests)) {
		t.Errorf("the fifth attempt: %s", last)
	}
	if all := p.delivered(0); len(all) != 1 || all[0].To != "studio@example.com" {
		t.Errorf("delivered %+v", all)
	}
	for _, email := range []string{"", "nessuno", "a@b\x00"} {
		if r := w.visitor(0).post("/forgot", url.Values{"email": {email}}); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d", email, r.status)
		}
	}
}

// TestResetOfPartner: a partner's page finds only the partner's users. The common page finds all users with the e-mail
// address, and each user gets a link.
func TestResetOfPartner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.mailing()
	other := w.newPartner("Terza Agenzia", "studio@example.com") // a client of the first partner has the same e-mail address
	host, err := w.store.Partner(other.ID()).Host(context.Background())
	w.must(err)
	page := "/p/" + host.Partner.Slug + "/forgot"
	if r := w.visitor(0).get(page); r.status != http.StatusOK || !strings.Contains(r.body, "Terza Agenzia") || !strings.Contains(r.body, `action="`+page+`"`) {
		t.Errorf("the partner's page: %d", r.status)
	}
	if r := w.visitor(0).post(page, url.Values{"email": {"studio@example.com"}}); r.status != http.StatusOK {
		t.Errorf("ask: %d", r.status)
	}
	if all := p.delivered(0); len(all) != 1 || !strings.Contains(all[0].Subject, "Terza Agenzia") {
		t.Errorf("delivered %+v", all)
	}
	w.visitor(0).post(page, url.Values{"email": {"verdi@example.com"}}) // the e-mail address of another partner's user
	w.visitor(0).post("/forgot", url.Values{"email": {"studio@example.com"}})
	if all := p.delivered(1); len(all) != 2 {
		t.Errorf("delivered %+v", all)
	}
	if r := w.visitor(0).get("/p/nessuna/forgot"); r.status != http.StatusNotFound {
		t.Errorf("an unknown partner: %d", r.status)
	}
}

// TestInvitationByMail: an invited user also gets the link by e-mail. A withdrawn invitation is not sent.
func TestInvitationByMail(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	p := w.mailing()
	v := w.visitor(w.partners[puntuale.Owner])
	made := v.post("/partner/users/new", url.Values{"email": {"nuova@example.com"}, "role": {"staff"}})
	link := linkIn(made.body)
	if !strings.Contains(made.body, "Lo mandiamo anche per e-mail a nuova@example.com") {
		t.Error("the page does not say that it is sent")
	}
	all := p.delivered(0)
	if len(all) != 1 || all[0].To != "nuova@example.com" || linkIn(all[0].Text) != link || all[0].Subject != "Il tuo accesso a Agenzia Aurora" {
		t.Fatalf("delivered %+v", all)
	}
	team, err := w.newPartnerHandle().Team().Users(context.Background())
	w.must(err)
	user := "/partner/users/" + team[len(team)-1].ID.String()
	v.post(user+"/invite", nil)
	v.post(user+"/uninvite", nil)
	if all := p.delivered(1); len(all) != 0 {
		t.Errorf("a withdrawn link is sent: %+v", all)
	}
	r := v.post("/partner/clients/new", url.Values{"name": {"Nuova Bottega"}, "phone": {"1"}, "email": {"bottega@example.com"}, "account_type": {"full"}})
	if all := p.delivered(1); len(all) != 1 || linkIn(all[0].Text) != linkIn(r.body) || linkIn(r.body) == "" {
		t.Errorf("a client's: %+v", all)
	}
}

// TestNoMail: without a mail server, no page offers a link by e-mail, and the pages for it do not exist.
func TestNoMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(0)
	if page := v.get("/login").body; strings.Contains(page, "/forgot") || !strings.Contains(page, "Password dimenticata?") {
		t.Error("the sign-in page offers a link, or no help")
	}
	if get, post := v.get("/forgot"), v.post("/forgot", url.Values{"email": {"studio@example.com"}}); get.status != http.StatusNotFound || post.status != http.StatusNotFound {
		t.Errorf("the page: %d, %d", get.status, post.status)
	}
}

// TestResetPages shows the pages on every screen, in both languages.
func TestResetPages(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		p := w.mailing()
		b.open("/login")
		b.check("login-forgot")
		b.click(`a[href="/forgot"]`)
		b.until(`location.pathname === "/forgot"`)
		b.check("forgot")
		b.fill("email", "studio@example.com")
		b.click("button.btn-primary")
		b.until(`!document.querySelector("[name=email]")`)
		b.check("forgot-asked")
		secret := p.resetIn(p.delivered(0)[0])
		b.open("/reset?t=" + secret)
		b.check("reset")
		b.fill("password", "tramonto sul lago")
		b.click("button.btn-primary")
		b.until(`location.pathname === "` + w.pages + `"`)
		b.open("/reset?t=" + secret)
		b.check("reset-spent")
	})
}
