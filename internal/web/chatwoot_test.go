package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/chatwoot/chatwoottest"
	"puntuale/internal/control/webhook"
)

// chatwootPage creates a simulated session, and returns its id and the address of its Chatwoot page.
func (w *world) chatwootPage() (session, page string) {
	w.t.Helper()
	session = w.everything(w.client)["sessions"]
	return session, w.pages + "/sessions/" + session + "/chatwoot"
}

// linked returns the session's link, or a zero link if there is none.
func (w *world) linked(session string) puntuale.ChatwootLink {
	w.t.Helper()
	l, err := w.webhooks.LinksOf(w.Client()).Read(context.Background(), session)
	if puntuale.CodeOf(err) != puntuale.CodeNotFound {
		w.must(err)
	}
	return l
}

// TestChatwootStory links a session in a browser, first with a wrong token, then with the right token. Then it removes
// the link.
func TestChatwootStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		peer := chatwoottest.New(t)
		session, page := w.chatwootPage()
		says := map[string][]string{
			"it": {"Vedi il collegamento", "Non collegato", "Da completare", "Collegato", "Togli il collegamento", "Collegamento a Chatwoot rimosso."},
			"en": {"Open the link", "Not linked", "Unfinished", "Linked", "Remove the link", "Link to Chatwoot removed."},
		}[b.look.language]
		state := func(says string) string {
			return `document.querySelector("#chatwoot .tag")?.innerText === ` + quote(says)
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sessions/" + session)
		b.press(says[0])
		b.until(`location.pathname === ` + quote(page) + ` && ` + state(says[1]))
		b.check("chatwoot-none")
		b.fill("base_url", peer.URL, "account_id", strconv.Itoa(chatwoottest.Account), "api_access_token", "wrong")
		b.click("#chatwoot form .btn-primary")
		b.until(`document.querySelector("#f-api_access_token-fault") && document.activeElement.id === "f-api_access_token" && ` + state(says[2]))
		b.check("chatwoot-refused")
		if typed := evaluate[string](b, `document.querySelector("[name=base_url]").value + document.querySelector("[name=api_access_token]").value`); typed != peer.URL {
			t.Errorf("after a refusal the form has %q", typed)
		}
		b.fill("api_access_token", chatwoottest.Token)
		b.click("#chatwoot form .btn-primary")
		b.until(state(says[3]))
		b.check("chatwoot-linked")
		if l := w.linked(session); !l.Active || len(peer.Inboxes()) != 1 || l.Chatwoot.Inbox != peer.Inboxes()[0].ID {
			t.Errorf("linked as %+v, and Chatwoot has %+v", l, peer.Inboxes())
		}
		b.press(says[4])
		b.until(`document.querySelector("#unlink-chatwoot[open]")`)
		b.check("chatwoot-unlink")
		b.click("#unlink-chatwoot button[type=submit]")
		b.reads(says[5])
		b.until(state(says[1]))
		if l := w.linked(session); l.ID != 0 {
			t.Errorf("still linked: %+v", l)
		}
		b.open(w.pages + "/audit")
		b.reads(says[5][:len(says[5])-1])
	})
}

// TestChatwootFaults: each fault is shown at its field. Typed values stay in the form, except the token. Nothing is
// stored before the page has called Chatwoot.
func TestChatwootFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	peer := chatwoottest.New(t)
	session, page := w.chatwootPage()
	v := w.visitor(w.clients[puntuale.Owner])
	good := func(name, value string) url.Values {
		f := url.Values{"base_url": {peer.URL}, "account_id": {strconv.Itoa(chatwoottest.Account)}, "api_access_token": {chatwoottest.Token}}
		f.Set(name, value)
		return f
	}
	tried := func(form url.Values, faults map[string]string) {
		t.Helper()
		for name, got := range map[string]answer{"htmx": v.htmx(page, form), "a browser": v.post(page, form)} {
			if got.status != http.StatusUnprocessableEntity || strings.Contains(got.body, "<main") != (name != "htmx") || strings.Contains(got.body, chatwoottest.Token) {
				t.Errorf("%v by %s: %d %s", form, name, got.status, got.body)
			}
			for field, says := range faults {
				if fault := between(got.body, `id="f-`+field+`-fault"`, "</p>"); !strings.Contains(fault, says) {
					t.Errorf("%v by %s: at %s is %q, not %q", form, name, field, fault, says)
				}
			}
		}
	}
	tried(url.Values{}, map[string]string{"base_url": "È obbligatorio", "account_id": "È obbligatorio", "api_access_token": "È obbligatorio"})
	tried(good("base_url", "https://10.1.2.3"), map[string]string{"base_url": "È un indirizzo privato"})
	tried(good("account_id", "tre"), map[string]string{"account_id": "Deve essere un numero"})
	tried(good("inbox_id", "x"), map[string]string{"inbox_id": "Deve essere un numero"})
	if l := w.linked(session); l.ID != 0 {
		t.Errorf("stored: %+v", l)
	}
	tried(good("api_access_token", "no"), map[string]string{"api_access_token": "oken"})
	tried(good("account_id", "4"), map[string]string{"account_id": "non ha questo account"})
	tried(good("inbox_id", "987654"), map[string]string{"inbox_id": "inbox"})
	peer.AnswerAll(http.StatusBadGateway)
	tried(good("inbox_id", ""), map[string]string{"base_url": "502"})
	peer.AnswerAll(0)
	if got := v.htmx(page, good("inbox_id", "")); got.status != http.StatusOK || got.header.Get("HX-Redirect") != page {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := strings.Count(v.get(w.pages+"/audit").body, "Collegamento a Chatwoot modificato"); n < 2 {
		t.Errorf("the audit log has %d entries of stored links", n)
	}
}

// TestChatwootStates: everybody sees the state of the link. Only owners see the form that changes the link, and nobody
// sees the token.
func TestChatwootStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	peer := chatwoottest.New(t)
	session, page := w.chatwootPage()
	owner, staff, reader := w.visitor(w.clients[puntuale.Owner]), w.visitor(w.clients[puntuale.Staff]), w.visitor(w.clients[puntuale.Reader])
	shows := func(parts ...string) {
		t.Helper()
		for name, v := range map[string]*visitor{"an owner": owner, "staff": staff, "a reader": reader} {
			got := inMain(v.get(page).body)
			for _, part := range parts {
				if !strings.Contains(got, part) {
					t.Errorf("%s does not see %q: %s", name, part, got)
				}
			}
			if strings.Contains(got, chatwoottest.Token) || strings.Contains(got, `name="api_access_token"`) != (v == owner) || v != owner && strings.Contains(got, "unlink-chatwoot") {
				t.Errorf("%s sees %s", name, got)
			}
			if card := inMain(v.get(w.pages + "/sessions/" + session).body); !strings.Contains(card, parts[0]) {
				t.Errorf("on the session's page %s does not see %q", name, parts[0])
			}
		}
	}
	if card := inMain(reader.get(w.pages + "/sessions/" + session).body); strings.Contains(card, "Chatwoot") {
		t.Error("a reader is led to a link that does not exist")
	}
	links, ctx := w.webhooks.LinksOf(w.Client()), context.Background()
	ask := webhook.NewLink{BaseURL: peer.URL, Token: "no", Account: strconv.Itoa(chatwoottest.Account)}
	if _, err := links.Link(ctx, session, ask); err == nil {
		t.Fatal("a wrong token is taken")
	}
	shows("Da completare", "invia di nuovo", peer.URL)
	ask.Token = chatwoottest.Token
	l, err := links.Link(ctx, session, ask)
	w.must(err)
	shows("Collegato", "Collegato da", "Numero dell’inbox")
	w.recordAttempt(l, puntuale.DeliveryResult{State: puntuale.DeliveryWaiting, Status: http.StatusBadGateway, Next: w.clock.Now().Add(time.Minute)})
	shows("Non riesce", "Non riesce da")
	w.recordAttempt(l, puntuale.DeliveryResult{State: puntuale.DeliveryFailed, Status: http.StatusGone, ReceiverGone: true})
	shows("Disattivato", "Disattivato da", "410", "collega di nuovo")
	for _, path := range []string{"", "/unlink"} {
		if got := staff.post(page+path, url.Values{}); got.status != http.StatusForbidden {
			t.Errorf("staff changes the link: %d", got.status)
		}
	}
	if got := owner.post(page+"/unlink", nil); got.to() != page || w.linked(session).ID != 0 {
		t.Errorf("unlink: %d to %q", got.status, got.to())
	}
	if got := owner.post(page+"/unlink", nil); got.status != http.StatusNotFound {
		t.Errorf("unlink again: %d", got.status)
	}
}

// recordAttempt records the result of an attempt to send a new reply to Chatwoot.
func (w *world) recordAttempt(l puntuale.ChatwootLink, r puntuale.DeliveryResult) {
	w.t.Helper()
	ctx, name := context.Background(), "told"+strconv.Itoa(int(r.State))
	_, err := w.store.KeepInbound(ctx, w.clock.Now(), []puntuale.TakenMessage{{Keep: puntuale.KeepAllReplies, Mark: name, Names: []string{"+393337654321"}, InboundMessage: puntuale.InboundMessage{
		Client: w.client, Session: l.Session, Phone: "+393337654321", At: w.clock.Now(), ID: name, Kind: puntuale.ReplyText, Text: "Ciao"}}})
	w.must(err)
	w.number()
	r.Webhook, r.Client, r.At = l.ID, w.client, w.clock.Now()
	w.must(w.sql.QueryRowContext(ctx, `select max(seq) from delivery where webhook_id = `+l.ID.String()).Scan(&r.Seq))
	w.must(w.store.EndAttempts(ctx, w.clock.Now(), []puntuale.DeliveryResult{r}))
}
