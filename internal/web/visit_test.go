package web_test

import (
	"context"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
)

func login(email, pass string) url.Values {
	return url.Values{"email": {email}, "password": {pass}}
}

// TestVisitEnds: a visit ends a day after its last request, and in any case after two weeks.
func TestVisitEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	in := func() bool { return v.get(w.pages).status == http.StatusOK }
	w.clock.Advance(23 * time.Hour)
	if !in() {
		t.Fatal("signed out after 23 hours")
	}
	w.clock.Advance(23 * time.Hour)
	if !in() {
		t.Error("coming by did not prolong the visit")
	}
	w.clock.Advance(24*time.Hour + time.Minute)
	if in() {
		t.Error("still signed in after a day without coming by")
	}
	v = w.visitor(w.clients[puntuale.Owner])
	for range 13 {
		w.clock.Advance(23 * time.Hour)
		if !in() {
			t.Fatal("signed out early")
		}
	}
	w.clock.Advance(14*24*time.Hour - 13*23*time.Hour)
	if in() {
		t.Error("still signed in after two weeks")
	}
}

// cookieOf returns the header line that sets a cookie, or "" if there is no such line.
func cookieOf(a answer, name string) string {
	for _, line := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(line, name+"=") {
			return line
		}
	}
	return ""
}

// TestTokens: signing in changes the visit's token, and signing out makes it invalid. Scripts cannot read the token,
// forms of other sites are sent without it, and the database does not contain it.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(0)
	token := func() string {
		u, _ := url.Parse(w.base)
		for _, c := range v.http.Jar.Cookies(u) {
			if c.Name == "puntuale" {
				return c.Value
			}
		}
		return ""
	}
	v.post("/login", url.Values{"email": {"studio@example.com"}, "password": {"x"}, "next": {"/me"}})
	before := token()
	r := v.post("/login", login("studio@example.com", password))
	after := token()
	if r.status != http.StatusSeeOther || after == "" || after == before {
		t.Fatalf("%d, %q became %q", r.status, before, after)
	}
	cookie := cookieOf(r, "puntuale")
	for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie lacks %s: %s", want, cookie)
		}
	}
	if data, found, err := w.store.Visit(context.Background(), after, w.clock.Now()); found || err != nil {
		t.Errorf("the database knows the token itself: %q, %v", data, err)
	}
	secure := w.visitor(0).do(http.MethodPost, "/login", login("studio@example.com", password), http.Header{"X-Forwarded-Proto": {"https"}, "Sec-Fetch-Site": {"same-origin"}})
	if c := cookieOf(secure, "__Host-puntuale"); !strings.Contains(c, "Secure") {
		t.Errorf("by https: %s", c)
	}
	stolen := w.visitor(0)
	u, _ := url.Parse(w.base)
	stolen.http.Jar.SetCookies(u, []*http.Cookie{{Name: "puntuale", Value: after}})
	if r := stolen.get(w.pages); r.status != http.StatusOK {
		t.Fatalf("with the same token: %d", r.status)
	}
	if r := v.post("/logout", nil); r.status != http.StatusSeeOther {
		t.Fatal(r.status)
	}
	if r := stolen.get(w.pages); r.status != http.StatusSeeOther {
		t.Errorf("after signing out: %d", r.status)
	}
}

// TestThrottle: after several wrong passwords, an IP address is refused for some time. Other IP addresses are not
// refused. After this time, the refused address may sign in with the right password.
func TestThrottle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := func(address string) *visitor {
		v := w.visitor(0)
		v.forwarded = address
		return v
	}
	guess := from("203.0.113.7")
	for i := range 5 {
		if r := guess.post("/login", login("studio@example.com", "sbagliata")); r.status != http.StatusUnprocessableEntity {
			t.Fatalf("guess %d: %d", i, r.status)
		}
	}
	r := guess.post("/login", login("studio@example.com", password))
	if r.status != http.StatusTooManyRequests || !strings.Contains(r.body, "Riprova fra") || !strings.Contains(r.body, `value="studio@example.com"`) {
		t.Errorf("the right password, too early: %d", r.status)
	}
	if r := from("203.0.113.8").post("/login", login("studio@example.com", password)); r.status != http.StatusSeeOther {
		t.Errorf("from elsewhere: %d", r.status)
	}
	w.clock.Advance(time.Minute)
	if r := guess.post("/login", login("studio@example.com", password)); r.status != http.StatusSeeOther {
		t.Errorf("after a wait: %d", r.status)
	}
	many := from("203.0.113.9")
	last := 0
	for i := range 31 {
		last = many.post("/login", login("nobody"+string(rune('a'+i%26))+string(rune('a'+i/26))+"@example.com", "x")).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after 30 accounts from one address: %d", last)
	}
	household := []string{"2001:db8:1:2::7", "2001:db8:1:2:ffff::9"}
	for i := range 6 {
		last = from(household[i%2]).post("/login", login("verdi@example.com", "sbagliata")).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("two addresses of one household: %d", last)
	}
}

// TestProxies: only trusted proxies may name the caller and the scheme. Even behind several proxies, each caller's
// attempts are counted separately.
func TestProxies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nobody, err := httpkit.ParseProxies(nil)
	w.must(err)
	w.serveBehind(nobody)
	https := http.Header{"X-Forwarded-Proto": {"https"}}
	if r := w.visitor(0).do(http.MethodGet, "/login", nil, https); r.header.Get("Strict-Transport-Security") != "" {
		t.Error("anybody can claim to come by https")
	}
	forged := w.visitor(0)
	last := 0
	for i := range 6 {
		forged.forwarded = fmt.Sprint("203.0.113.", i)
		last = forged.post("/login", login("verdi@example.com", "sbagliata")).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("a forged address has a count of its own: %d", last)
	}
	two, err := httpkit.ParseProxies([]string{"loopback", "198.51.100.0/24"})
	w.must(err)
	w.serveBehind(two)
	if r := w.visitor(0).do(http.MethodGet, "/login", nil, https); r.header.Get("Strict-Transport-Security") == "" {
		t.Error("by https browsers are not told to stay there")
	}
	guess := w.visitor(0)
	for range 6 {
		guess.forwarded = "203.0.113.7, 198.51.100.9"
		last = guess.post("/login", login("studio@example.com", "sbagliata")).status
	}
	other := w.visitor(0)
	other.forwarded = "203.0.113.8, 198.51.100.9"
	if r := other.post("/login", login("studio@example.com", password)); last != http.StatusTooManyRequests || r.status != http.StatusSeeOther {
		t.Errorf("two proxies on the way: who guesses %d, who knows the password %d", last, r.status)
	}
}

// TestSecondFactor sets up a second factor and signs in with it. Each code and each recovery code works once.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	page := v.get("/me/second").body
	secret := decode(t, strings.ReplaceAll(between(page, `class="secret-text">`, "<"), " ", ""))
	if r := v.post("/me/second", url.Values{"code": {"000000"}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("a wrong code: %d", r.status)
	}
	r := v.post("/me/second", url.Values{"code": {auth.Code(secret, w.clock.Now())}})
	codes := strings.Split(between(r.body, `<ul class="codes"><li>`, `</li></ul>`), "</li><li>")
	if r.status != http.StatusOK || len(codes) != 10 {
		t.Fatalf("%d, %d codes", r.status, len(codes))
	}
	begin := func() *visitor {
		t.Helper()
		n := w.visitor(0)
		if r := n.post("/login", login("studio@example.com", password)); r.to() != "/login/code" {
			t.Fatalf("after the password: %d %s", r.status, r.to())
		}
		if r := n.get(w.pages); r.status != http.StatusSeeOther {
			t.Fatalf("in without a code: %d", r.status)
		}
		return n
	}
	if r := begin().post("/login/code", url.Values{"code": {auth.Code(secret, w.clock.Now())}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("the code that set it up again: %d", r.status)
	}
	w.clock.Advance(30 * time.Second)
	code := auth.Code(secret, w.clock.Now())
	n := begin()
	if r := n.post("/login/code", url.Values{"code": {code[:3] + " " + code[3:]}}); r.status != http.StatusSeeOther || r.to() != w.pages {
		t.Fatalf("with the code: %d %s", r.status, r.to())
	}
	if r := begin().post("/login/code", url.Values{"code": {code}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("the same code again: %d", r.status)
	}
	if r := begin().post("/login/code", url.Values{"code": {strings.ToUpper(codes[3])}}); r.status != http.StatusSeeOther {
		t.Errorf("a recovery code: %d", r.status)
	}
	if r := begin().post("/login/code", url.Values{"code": {codes[3]}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("the same recovery code again: %d", r.status)
	}
	guess := begin()
	last := 0
	for range 6 {
		last = guess.post("/login/code", url.Values{"code": {"123456"}}).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after many guesses: %d", last)
	}
	w.clock.Advance(puntuale.MaxWait)
	if r := n.post("/me/second/end", url.Values{"present": {"sbagliata"}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("turned off with a wrong password: %d", r.status)
	}
	if r := n.post("/me/second/end", url.Values{"present": {password}, "code": {auth.Code(secret, w.clock.Now())}}); r.status != http.StatusSeeOther {
		t.Errorf("turned off: %d", r.status)
	}
	if r := w.visitor(0).post("/login", login("studio@example.com", password)); r.to() != w.pages {
		t.Errorf("the password alone: %d %s", r.status, r.to())
	}
}

func decode(t testing.TB, text string) []byte {
	t.Helper()
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	if err != nil {
		t.Fatalf("%q is no secret: %v", text, err)
	}
	return secret
}

// TestPasswordChange: a new password ends the person's other visits. A weak password is refused.
func TestPasswordChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, elsewhere := w.visitor(w.clients[puntuale.Owner]), w.visitor(w.clients[puntuale.Owner])
	for _, f := range []url.Values{
		{"present": {"sbagliata"}, "password": {"tramonto sul lago"}}, {"present": {password}, "password": {"corta"}}, {"present": {password}, "password": {"studio@example.com"}},
	} {
		if r := v.post("/me/password", f); r.status != http.StatusUnprocessableEntity || strings.Count(r.body, `class="fault"`) != 1 || strings.Contains(r.body, password) {
			t.Errorf("%v: %d", f, r.status)
		}
	}
	if r := v.post("/me/password", url.Values{"present": {password}, "password": {"tramonto sul lago"}}); r.status != http.StatusSeeOther {
		t.Fatal(r.status)
	}
	if r := v.get("/me"); r.status != http.StatusOK || !strings.Contains(r.body, "Password cambiata") {
		t.Errorf("who changed it: %d", r.status)
	}
	if r := elsewhere.get("/me"); r.status != http.StatusSeeOther {
		t.Errorf("elsewhere: %d", r.status)
	}
	if r := w.visitor(0).post("/login", login("studio@example.com", "tramonto sul lago")); r.status != http.StatusSeeOther {
		t.Errorf("with the new one: %d", r.status)
	}
}

// TestSignOutElsewhere: a person sees in which browsers they are signed in, and signs out of one of the others.
func TestSignOutElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.clients[puntuale.Owner]
	here, elsewhere, third, stranger := w.visitor(owner), w.visitor(0), w.visitor(owner), w.visitor(w.clients[puntuale.Staff])
	phone := http.Header{"User-Agent": {"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"}}
	w.clock.Advance(2 * time.Hour)
	if r := elsewhere.do(http.MethodPost, "/ticket", url.Values{"t": {w.ticket(owner)}}, phone); r.status != http.StatusSeeOther {
		t.Fatal(r.status)
	}
	page := here.get("/me").body
	if text := words(page); strings.Count(page, `name="visit"`) != 2 || !strings.Contains(text, "Safari su iPhone 127.0.0.1 · dal") || strings.Count(text, "Questo browser") != 1 {
		t.Fatalf("the page says %s", text)
	}
	token := regexp.MustCompile(`(?s)Safari su iPhone.*?name="visit" value="([^"]+)"`).FindStringSubmatch(page)[1]
	if r := stranger.post("/me/visits/end-one", url.Values{"visit": {token}}); r.status != http.StatusSeeOther {
		t.Errorf("a stranger: %d", r.status)
	}
	if r := elsewhere.get("/me"); r.status != http.StatusOK {
		t.Errorf("a stranger ended it: %d", r.status)
	}
	if r := here.post("/me/visits/end-one", url.Values{"visit": {token}}); r.status != http.StatusSeeOther {
		t.Errorf("ended: %d", r.status)
	}
	if r := elsewhere.get("/me"); r.status != http.StatusSeeOther {
		t.Errorf("elsewhere: %d", r.status)
	}
	if r := third.get("/me"); r.status != http.StatusOK || strings.Count(r.body, `name="visit"`) != 1 {
		t.Errorf("in the third browser: %d", r.status)
	}
	if r := here.post("/me/visits/end", nil); r.status != http.StatusSeeOther || strings.Contains(here.get("/me").body, `name="visit"`) {
		t.Errorf("after all others were ended: %d", r.status)
	}
}

// TestWeakPassword: the API accepts any password. A user with a weak password cannot sign in until somebody sets
// another password.
func TestWeakPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	p := w.newPartnerHandle()
	created, err := p.CreateClient(ctx, account.NewClient{Name: "Debole", Email: "a@b", Password: "x", Phone: "+39 02 1"}, control.Once[account.CreatedClient]{})
	w.must(err)
	if r := w.visitor(0).post("/login", login("a@b", "x")); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, "troppo facile da indovinare") {
		t.Errorf("a weak password: %d", r.status)
	}
	if r := w.visitor(0).post("/login", login("a@b", "y")); strings.Contains(r.body, "troppo facile") {
		t.Error("a wrong password is told to be right")
	}
	team, err := p.TeamOf(ctx, created.ID.String())
	w.must(err)
	users, err := team.Users(ctx)
	w.must(err)
	v := w.visitor(w.partners[puntuale.Owner])
	link := linkIn(v.post("/partner/clients/"+created.ID.String()+"/users/"+users[0].ID.String()+"/invite", nil).body)
	if r := w.visitor(0).post("/invitation", url.Values{"t": {link}, "password": {"tramonto sul lago"}}); r.status != http.StatusSeeOther {
		t.Fatalf("a new password: %d", r.status)
	}
	if r := w.visitor(0).post("/login", login("a@b", "tramonto sul lago")); r.to() != "/c/"+created.ID.String() {
		t.Errorf("with the new one: %d %s", r.status, r.to())
	}
}

// TestWhichPartner: one e-mail address may have logins at several partners. The login with the right password is signed
// in. If several logins have this password, the person chooses. At a partner's own address, only this partner's logins
// are used.
func TestWhichPartner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	other := w.newPartner("Terza Agenzia", "terza@example.com")
	here := w.newPartnerHandle()
	for p, pass := range map[*account.Partner]string{other: password, here: password} {
		_, err := p.CreateClient(ctx, account.NewClient{Name: "Doppio", Email: "doppio@example.com", Password: pass, Phone: "1"}, control.Once[account.CreatedClient]{})
		w.must(err)
	}
	v := w.visitor(0)
	if r := v.post("/login", login("Doppio@Example.com", password)); r.to() != "/login/choose" {
		t.Fatalf("%d %s", r.status, r.to())
	}
	page := v.get("/login/choose").body
	if strings.Count(page, `name="user"`) != 2 || !strings.Contains(page, "Terza Agenzia") || !strings.Contains(page, "Agenzia Aurora") {
		t.Errorf("the choice: %s", page)
	}
	if r := v.post("/login/choose", url.Values{"user": {w.clients[puntuale.Owner].String()}}); r.to() != "/login/choose" {
		t.Errorf("somebody else: %d %s", r.status, r.to())
	}
	if r := v.get("/partner"); r.status != http.StatusSeeOther {
		t.Errorf("in without choosing: %d", r.status)
	}
	user := between(page[strings.Index(page, `name="user"`):], `value="`, `"`)
	if r := v.post("/login/choose", url.Values{"user": {user}}); !strings.HasPrefix(r.to(), "/c/") {
		t.Errorf("chosen: %d %s", r.status, r.to())
	}
	if r := w.visitor(0).post("/p/terza-agenzia", login("doppio@example.com", password)); !strings.HasPrefix(r.to(), "/c/") {
		t.Errorf("at the partner's address: %d %s", r.status, r.to())
	}
	if r := w.visitor(0).post("/p/terza-agenzia", login("studio@example.com", password)); r.status != http.StatusUnprocessableEntity {
		t.Errorf("another partner's client: %d", r.status)
	}
	if r := w.visitor(0).get("/p/nessuno"); r.status != http.StatusNotFound {
		t.Errorf("nobody's address: %d", r.status)
	}
}

// TestNext: after a sign-in, the browser opens the page that the person wanted to see. It never opens another site.
func TestNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for next, want := range map[string]string{
		"/me": "/me", "": w.pages, "https://evil.example/": w.pages, "//evil.example/": w.pages, `/\evil.example`: w.pages, "/\tevil": w.pages, "/\x00x": w.pages, "/\x7f": w.pages, "/\u0085x": w.pages, "me": w.pages,
	} {
		f := login("studio@example.com", password)
		f.Set("next", next)
		if r := w.visitor(0).post("/login", f); r.to() != want {
			t.Errorf("%q: %s, want %s", next, r.to(), want)
		}
	}
}

// TestTicketOnce: a ticket works once, and only on the server's own machine.
func TestTicketOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ticket := w.ticket(w.clients[puntuale.Owner])
	v := w.visitor(0)
	if r := v.get("/ticket?t=" + ticket); r.status != http.StatusOK {
		t.Errorf("looked at: %d", r.status)
	}
	far := w.visitor(0)
	far.forwarded = "203.0.113.7"
	if r := far.post("/ticket", url.Values{"t": {ticket}}); r.status != http.StatusNotFound {
		t.Errorf("from elsewhere: %d", r.status)
	}
	if r := v.post("/ticket", url.Values{"t": {ticket}}); r.to() != w.pages {
		t.Errorf("%d %s", r.status, r.to())
	}
	if r := w.visitor(0).post("/ticket", url.Values{"t": {ticket}}); r.status != http.StatusNotFound || !strings.Contains(r.body, "non vale più") {
		t.Errorf("again: %d", r.status)
	}
}

// TestSuspended: pages show a suspended client's users that the client is suspended. Its partner can still open the
// dashboard.
func TestSuspended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	_, err := w.newPartnerHandle().ChangeClient(context.Background(), w.client.String(), account.ClientChange{Suspended: puntuale.Change[bool]{Set: true, To: true}})
	w.must(err)
	if r := v.get(w.pages); r.status != http.StatusForbidden || !strings.Contains(r.body, "Account sospeso") {
		t.Errorf("its user: %d %s", r.status, between(r.body, "<main", "</main>"))
	}
	p := w.visitor(w.partners[puntuale.Staff])
	p.post("/partner/clients/"+w.client.String()+"/enter", nil)
	if r := p.get(w.pages); r.status != http.StatusOK || !strings.Contains(r.body, "Account sospeso") {
		t.Errorf("its partner: %d", r.status)
	}
}

// TestSecondFactorInBrowser sets up a second factor and signs in with it, on every screen.
func TestSecondFactorInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Owner])
		b.open("/me/second")
		secret := decode(t, strings.ReplaceAll(evaluate[string](b, `document.querySelector(".secret-text").textContent`), " ", ""))
		b.fill("code", "12 34")
		b.click("form[action='/me/second'] button")
		b.until(`document.activeElement?.name === "code" && document.querySelector(".fault")`)
		b.fill("code", auth.Code(secret, w.clock.Now()))
		b.click("form[action='/me/second'] button")
		b.until(`document.querySelectorAll(".codes li").length === 10`)
		b.check("codes")
		b.open("/me")
		b.check("on")
		b.click(`[data-open="second-off"]`)
		b.until(`document.querySelector("dialog#second-off[open]")`)
		b.check("off")
		b.open("/me")
		if b.look.width < 600 { // the element is in the menu, which is closed
			b.click(".phone [data-open=more]")
			b.check("menu")
			b.click(`#more form[action="/logout"] button`)
		} else {
			b.click(`.side form[action="/logout"] button`)
		}
		b.until(`location.pathname === "/login"`)
		w.clock.Advance(time.Minute)
		b.fill("email", "studio@example.com", "password", password)
		b.click("button.btn-primary")
		b.until(`location.pathname === "/login/code"`)
		b.check("code")
		b.fill("code", auth.Code(secret, w.clock.Now()))
		b.click("button.btn-primary")
		b.until(`location.pathname === "` + w.pages + `"`)
	})
}
