package web_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/store/storetest"
	"puntuale/internal/web/page"
)

// linkingWorld is a test of linking pages: a gateway's number that is not linked, and a reader without an account.
type linkingWorld struct {
	*world
	peer    *gatewaytest.Peer
	session puntuale.SessionID
	them    *visitor
}

func newLinking(t *testing.T, w *world) *linkingWorld {
	t.Helper()
	w.own(t)
	l := &linkingWorld{world: w, peer: gatewaytest.New(t), them: w.visitor(0)}
	simulated := false
	s, err := w.Client().CreateSession(context.Background(), control.NewSession{
		Name: "Numero segreto", Type: string(puntuale.SendApp), Sandbox: &simulated, Gateway: &control.NewGateway{AccessToken: gatewaytest.Token, BaseURL: l.peer.URL},
	}, control.Once[control.Session]{})
	w.must(err)
	l.session = s.ID
	return l
}

// offer makes a page, and returns its path.
func (l *linkingWorld) offer() string {
	l.t.Helper()
	made, err := l.Client().OfferLinkingPage(context.Background(), l.session.String(), "")
	l.must(err)
	path, ok := strings.CutPrefix(made.Address, "https://app.example")
	if !ok || !made.Until.Equal(l.clock.Now().Add(24*time.Hour).Truncate(time.Microsecond)) {
		l.t.Errorf("%s until %v", made.Address, made.Until)
	}
	return path
}

func (l *linkingWorld) now() control.Session {
	l.t.Helper()
	s, err := l.Client().Session(context.Background(), l.session.String())
	l.must(err)
	return s
}

// scan links the number, and waits until the session knows it.
func (l *linkingWorld) scan() {
	l.t.Helper()
	l.peer.Scan(l.now().Code.Text, "390117654321")
	l.becomes(puntuale.LinkOnline)
}

func (l *linkingWorld) becomes(want puntuale.LinkState) {
	l.t.Helper()
	for deadline := time.Now().Add(within); l.now().State != want; <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("the session is %v, not %v", l.now().State, want)
		}
		l.clock.Advance(100 * time.Millisecond)
	}
}

// over checks that a page shows only that it ended, and that its other addresses do nothing.
func (l *linkingWorld) over(path string, status int) {
	l.t.Helper()
	before := l.now()
	r := l.them.get(path)
	if r.status != status || strings.Contains(r.body, "<form method=\"post\" action=\"/link") || strings.Contains(r.body, "class=\"qr\"") {
		l.t.Errorf("%s: %d %s", path, r.status, r.body)
	}
	for name, want := range map[string]string{"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow", "Set-Cookie": ""} {
		if got := r.header.Get(name); got != want {
			l.t.Errorf("%s: %s is %q", path, name, got)
		}
	}
	if r := l.them.post(path, url.Values{"method": {"qr"}}); r.status != status {
		l.t.Errorf("start %s: %d", path, r.status)
	}
	if r := l.them.do(http.MethodGet, path+"/live?shown=over", nil, http.Header{"Accept": {"text/event-stream"}}); r.status != http.StatusGone {
		l.t.Errorf("%s live: %d", path, r.status)
	}
	if e := l.them.event(path + "/live?shown=before"); strings.Contains(e, "4321") || strings.Contains(e, "qr") || !strings.Contains(e, "notice-warn") {
		l.t.Errorf("%s live: %s", path, e)
	}
	if after := l.now(); after.State != before.State || after.Number != before.Number {
		l.t.Errorf("%s changed %v to %v", path, before.State, after.State)
	}
}

// TestLinkingPageEnds: a page links one number once. Before, it shows nothing but what to do. Afterwards, and when it
// ended in another way, it shows only this.
func TestLinkingPageEnds(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := driver(t)
			db.Config.Public = "https://app.example"
			l := newLinking(t, newWorldOn(t, db, "https://app.example"))
			w, them := l.world, l.them
			w.must(w.store.Partner(w.partner).SetBrand(context.Background(), puntuale.Brand{Name: "Messaggi Aurora", Colour: "#aa3344"}))
			first := l.offer()
			code := strings.TrimPrefix(first, control.LinkingPath)
			var rows int
			w.must(w.sql.QueryRow("select count(*) from session where code_mark <> '' and code_mark not like '%" + code + "%'").Scan(&rows))
			if rows != 1 {
				t.Error("the store has the code itself")
			}

			r := them.get(first)
			if r.status != http.StatusOK || !strings.Contains(r.body, "Messaggi Aurora") || strings.Contains(r.body, "Numero segreto") || strings.Contains(r.body, w.Client().Account().Name) || strings.Contains(r.body, "?by=code") {
				t.Errorf("%d %s", r.status, r.body)
			}
			if english := (&visitor{w: w, http: them.http, language: "en-GB"}).get(first); !strings.Contains(english.body, "Link your WhatsApp number") {
				t.Errorf("in English: %s", english.body)
			}
			if r := w.visitor(0).do(http.MethodPost, "/language", url.Values{"language": {"en"}}, http.Header{"Referer": {w.base + first}}); r.to() != first {
				t.Errorf("another language leads to %q", r.to())
			}
			for name, want := range map[string]string{"Referrer-Policy": "same-origin", "Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow", "Set-Cookie": "", "Content-Security-Policy": page.Policy} {
				if got := r.header.Get(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
			for _, method := range []string{http.MethodHead, http.MethodGet} {
				them.do(method, first, nil, http.Header{"User-Agent": {"WhatsApp/2.24.1 A"}})
				them.do(method, first+"/live", nil, nil)
				them.do(method, first+"?by=code", nil, nil)
			}
			if r := them.do(http.MethodPost, first, url.Values{"method": {"qr"}}, http.Header{"Sec-Fetch-Site": {"cross-site"}}); r.status != http.StatusForbidden {
				t.Errorf("from another site: %d", r.status)
			}
			for _, bad := range []url.Values{{}, {"method": {"code"}, "phone": {"+393331234567"}}, {"method": {"passkey"}}, {"method": {"qr"}, "phone": {"+393331234567"}}} {
				if r := them.post(first, bad); r.status != http.StatusUnprocessableEntity {
					t.Errorf("%v: %d", bad, r.status)
				}
			}
			if l.now().State != puntuale.LinkUnlinked {
				t.Fatal("something other than the button began to link")
			}
			// an old browser says only from which origin the form comes, and says "null" on a page without a Referer
			if r := them.do(http.MethodPost, first, url.Values{"method": {"qr"}}, http.Header{"Sec-Fetch-Site": nil, "Origin": {w.base}}); r.status != http.StatusSeeOther {
				t.Errorf("from an old browser: %d", r.status)
			}
			for range 2 { // the second reader gets the code of the first
				if r := them.post(first, url.Values{"method": {"qr"}}); r.status != http.StatusSeeOther || r.to() != first {
					t.Fatalf("start: %d to %q %s", r.status, r.to(), r.body)
				}
			}
			if n := l.asked(); n != 1 {
				t.Errorf("%d starts are noted", n)
			}
			if r := them.get(first); !strings.Contains(r.body, `class="qr"`) {
				t.Errorf("no code: %s", r.body)
			}
			onScreen := l.now().Code.Text
			second := l.offer() // the first page has ended, and with it the code on somebody's screen
			if state := l.now().State; state != puntuale.LinkUnlinked {
				t.Errorf("the first page ended, but its pairing is %v", state)
			}
			l.over(first, http.StatusNotFound)
			if r := them.post(second, url.Values{"method": {"qr"}}); r.status != http.StatusSeeOther || l.now().Code.Text == onScreen {
				t.Errorf("start the second page: %d, or the code is still that of the first", r.status)
			}
			seen := version(them.get(second).body)
			if e := them.event(second + "/live?shown=before"); !strings.Contains(e, `class="qr"`) {
				t.Errorf("live: %s", e)
			}
			l.scan()
			l.over(second, http.StatusGone)
			if e := them.event(second + "/live?shown=" + seen); !strings.Contains(e, "4321") || strings.Contains(e, "notice-warn") { // the phone slept while its owner scanned
				t.Errorf("live, for a browser that showed the code: %s", e)
			}
			for _, forged := range []string{seen + "x", "true-false-0-false-", "x" + seen, seen[:len(seen)-1], "-"} {
				if e := them.event(second + "/live?shown=" + forged); strings.Contains(e, "4321") {
					t.Errorf("live, for the version %q: %s", forged, e)
				}
			}
			if r := them.get(second); !strings.Contains(r.body, "già stata usata") || !strings.Contains(r.body, "Messaggi Aurora") || strings.Contains(r.body, "4321") {
				t.Errorf("used: %s", r.body)
			}
			if _, err := w.Client().OfferLinkingPage(context.Background(), l.session.String(), ""); puntuale.CodeOf(err) != puntuale.CodeConflict {
				t.Errorf("a page of a linked number: %v", err)
			}
			_, err := w.Client().Unlink(context.Background(), l.session.String())
			w.must(err)
			l.over(second, http.StatusGone) // a used page does not work again

			third := l.offer()
			w.clock.Advance(24*time.Hour - time.Second)
			if r := them.get(third); r.status != http.StatusOK {
				t.Errorf("before its end: %d", r.status)
			}
			w.clock.Advance(time.Second)
			l.over(third, http.StatusGone)
			fourth := l.offer()
			if r := them.post(fourth, url.Values{"method": {"qr"}}); r.status != http.StatusSeeOther || l.now().State != puntuale.LinkPairing {
				t.Errorf("start the fourth page: %d, %v", r.status, l.now().State)
			}
			_, err = w.Client().EndLinkingPage(context.Background(), l.session.String())
			w.must(err)
			if state := l.now().State; state != puntuale.LinkUnlinked {
				t.Errorf("the page was cancelled, but its pairing is %v", state)
			}
			_, err = w.Client().Pair(context.Background(), l.session.String(), control.Pairing{Method: string(puntuale.PairQR)})
			w.must(err)
			_, err = w.Client().EndLinkingPage(context.Background(), l.session.String()) // there is none
			w.must(err)
			if state := l.now().State; state != puntuale.LinkPairing {
				t.Errorf("the client's own pairing is %v after there was no page to end", state)
			}
			_, err = w.Client().Unlink(context.Background(), l.session.String())
			w.must(err)
			l.over(fourth, http.StatusNotFound)
			for _, guessed := range []string{strings.Repeat("A", 26), "x", strings.Repeat("A", 500), "%00", strings.ToLower(code)} {
				if r := them.get(control.LinkingPath + guessed); r.status != http.StatusNotFound || strings.Contains(r.body, "Numero segreto") {
					t.Errorf("%.30s: %d", guessed, r.status)
				}
			}

			fifth := l.offer()
			for range puntuale.MaxPageStarts { // each ends the pairing before, so that the next one begins anew
				if r := them.post(fifth, url.Values{"method": {"qr"}}); r.status != http.StatusSeeOther {
					t.Fatalf("start: %d %s", r.status, r.body)
				}
				_, err := w.Client().Unlink(context.Background(), l.session.String())
				w.must(err)
			}
			if r := them.post(fifth, url.Values{"method": {"qr"}}); r.status != http.StatusConflict || l.now().State != puntuale.LinkUnlinked {
				t.Errorf("one more: %d, %v", r.status, l.now().State)
			}
			sixth := l.offer()
			_, err = w.newPartnerHandle().ChangeClient(context.Background(), w.client.String(), account.ClientChange{Suspended: puntuale.Change[bool]{Set: true, To: true}})
			w.must(err)
			if r := them.get(sixth); r.status != http.StatusGone {
				t.Errorf("of a suspended client: %d", r.status)
			}
			_, err = w.newPartnerHandle().ChangeClient(context.Background(), w.client.String(), account.ClientChange{Suspended: puntuale.Change[bool]{Set: true}})
			w.must(err)
			if r := them.get(sixth); r.status != http.StatusOK {
				t.Errorf("of a client that is back: %d", r.status)
			}
			w.must(w.Client().DeleteSession(context.Background(), l.session.String(), "cancel", ""))
			if r := them.get(sixth); r.status != http.StatusNotFound {
				t.Errorf("of a deleted session: %d", r.status)
			}
		})
	}
}

// asked counts the starts of linking pages in the client's audit log.
func (l *linkingWorld) asked() (n int) {
	l.t.Helper()
	l.must(l.sql.QueryRow("select count(*) from audit where action = 'session.page_start' and who = 'page' and address <> ''").Scan(&n))
	return n
}

// TestLinkingPageRights: those who may link a number may make its page, and nobody else. Official numbers, and sessions
// with devices, have none.
func TestLinkingPageRights(t *testing.T) {
	t.Parallel()
	l := newLinking(t, newWorldAt(t, "https://app.example"))
	w, at := l.world, "/sessions/"+l.session.String()+"/page"
	for user, want := range map[puntuale.UserID]int{w.clients[puntuale.Reader]: http.StatusForbidden, w.clients[puntuale.Staff]: http.StatusOK, w.foreignOwner: http.StatusNotFound} {
		v := w.visitor(user)
		if r := v.post(w.pages+at, nil); r.status != want || want == http.StatusOK && !strings.Contains(r.body, "https://app.example/link/") {
			t.Errorf("user %d: %d %s", user, r.status, r.body)
		}
		foreign := "/c/" + w.foreignClient.String() + at // the session is not this client's
		if r := v.post(foreign, nil); r.status == http.StatusOK {
			t.Errorf("user %d: another client's page: %d", user, r.status)
		}
	}
	staff := w.visitor(w.clients[puntuale.Staff])
	if r := staff.post(w.pages+at+"/end", nil); r.status != http.StatusSeeOther || !l.now().PageUntil.IsZero() {
		t.Errorf("end: %d, %v", r.status, l.now().PageUntil)
	}
	for _, kind := range []puntuale.ConnectionType{puntuale.Official, puntuale.SendApp} {
		simulated := false
		s, err := w.Client().CreateSession(context.Background(), control.NewSession{Name: "Altro", Type: string(kind), Sandbox: &simulated, Devices: kind == puntuale.SendApp}, control.Once[control.Session]{})
		w.must(err)
		if _, err := w.Client().OfferLinkingPage(context.Background(), s.ID.String(), ""); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("%s: %v", kind, err)
		}
		if r := staff.get(w.pages + "/sessions/" + s.ID.String()); strings.Contains(r.body, s.ID.String()+"/page\"") {
			t.Errorf("%s: the page offers it", kind)
		}
	}
}

// TestLinkingPageFlood: readers of a page cannot take what the client's own pages need, and one address gets a limited
// number of pages a second.
func TestLinkingPageFlood(t *testing.T) {
	t.Parallel()
	l := newLinking(t, newWorldAt(t, "https://app.example"))
	w, path := l.world, l.offer()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	for range 60 { // more than the client may have open
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path+"/live?shown="+version(l.them.get(path).body), nil)
		w.must(err)
		r.Header.Set("Accept", "text/event-stream")
		response, err := l.them.http.Do(r)
		w.must(err)
		defer response.Body.Close()
	}
	staff := w.visitor(w.clients[puntuale.Staff])
	if e := staff.event(w.pages + "/sessions/" + l.session.String() + "/link/live?shown=before"); !strings.Contains(e, "link-now") {
		t.Errorf("the client's own page: %q", e)
	}

	w.serveAs(page.Config{Admit: admission.Limits{UnknownCallers: admission.NewRateLimiter[admission.CallerKey](1, 3, w.clock.Now)}})
	refused := 0
	for range 6 {
		if l.them.get(path).status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("%d of 6 were refused", refused)
	}
}

// breaking is the body of a request. Once the server reads it, the handler has begun, and a table is away.
type breaking struct {
	io.Reader
	broken func()
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.broken != nil {
		b.broken()
		b.broken = nil
	}
	return b.Reader.Read(p)
}

// TestLinkingPageWithoutDatabase: a fault of the database does not look like the end of a page.
func TestLinkingPageWithoutDatabase(t *testing.T) {
	t.Parallel()
	l := newLinking(t, newWorldAt(t, "https://app.example"))
	path := l.offer()
	body := &breaking{strings.NewReader(url.Values{"method": {"passkey"}}.Encode()), func() {
		_, err := l.sql.Exec("alter table session rename to session_away")
		l.must(err)
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.base+path, body)
	l.must(err)
	for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", "Expect": "100-continue"} {
		r.Header.Set(name, value)
	}
	waits := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: within}} // the handler reads the body after it found the page
	response, err := waits.Do(r)
	l.must(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	l.must(err)
	_, err = l.sql.Exec("alter table session_away rename to session")
	l.must(err)
	if response.StatusCode != http.StatusInternalServerError || strings.Contains(string(content), "non più valida") {
		t.Errorf("%d %s", response.StatusCode, content)
	}
	if r := l.them.get(path); r.status != http.StatusOK {
		t.Errorf("afterwards: %d", r.status)
	}
}

// version returns the version of the linking page that a reader has.
func version(body string) string {
	_, rest, _ := strings.Cut(body, "/live?shown=")
	version, _, _ := strings.Cut(rest, `"`)
	return version
}

// TestLinkingPageAtGateway links a gateway's number through the page in a browser, on both databases.
func TestLinkingPageAtGateway(t *testing.T) {
	t.Parallel()
	startChromium(t)
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := driver(t)
			db.Config.Public = "https://app.example"
			l := newLinking(t, newWorldOn(t, db, "https://app.example"))
			b := newBrowser(t, l.world, screens(t)[0])
			path := l.offer()
			b.open(path)
			b.leaves(func() { b.click("#linking form button") })
			b.until(`document.querySelector("#linking .qr path")`)
			b.check("qr")
			l.peer.Scan(l.now().Code.Text, "390117654321")
			b.ticking(`document.querySelector("#linking .notice-ok")`)
			b.reads("4321")
			b.open(path)
			b.until(`document.querySelector(".notice-warn") && !document.querySelector("main form")`)
			if status := evaluate[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusGone {
				t.Errorf("once used: %d", status)
			}
		})
	}
}
