package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

var trackedLink = regexp.MustCompile(`https://app\.example(/r/[0-9A-Za-z]{8})`)

const browserName = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"

// tracked sends a message with a link to nobody in particular, as the dispatcher does, and returns it with the link's path.
func (w *world) tracked() (puntuale.MessageDetail, string) {
	w.t.Helper()
	ctx := context.Background()
	on := true
	_, err := w.Client().UpdateSettings(ctx, puntuale.SettingsPatch{TrackLinks: &on}, nil)
	w.must(err)
	started, err := w.Client().Send(ctx, control.SingleCall{Phone: "+393331234567", Fields: map[string]json.RawMessage{"text": json.RawMessage(`"Guarda https://negozio.example/è?a=1&b=2#c."`)}, Body: []byte("{}")})
	w.must(err)
	sent := started.IDs[0]
	tenant := w.store.Tenant(w.Client().ID())
	read := func() puntuale.MessageDetail {
		all, err := tenant.Details(ctx, []puntuale.MessageID{sent})
		w.must(err)
		return all[0]
	}
	m := read()
	step := puntuale.StepRef{RunRef: puntuale.RunRef{Client: w.Client().ID(), ID: m.Run}, Step: m.Step}
	contents, err := w.store.Contents(ctx, []puntuale.StepRef{step})
	w.must(err)
	found := trackedLink.FindStringSubmatch(contents[step].Content.Text)
	if found == nil {
		w.t.Fatalf("no link in %q", contents[step].Content.Text)
	}
	node, err := w.store.Join(ctx, time.Minute)
	w.must(err)
	item := puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: w.Client().ID(), ID: sent}, Phone: m.Phone}
	token := storetest.Token(node)
	_, err = w.store.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: w.clock.Now(), Messages: []puntuale.ClaimItem{item}})
	w.must(err)
	_, err = w.store.Record(ctx, w.clock.Now(), []puntuale.Result{{MessageRef: item.MessageRef, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}})
	w.must(err)
	return read(), found[1]
}

// TestTrackedLink: a link leads to its address and nowhere else, and previews of chats are not people.
func TestTrackedLink(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://app.example")
	m, path := w.tracked()
	w.clock.Advance(time.Minute)
	them := w.visitor(0)
	as := func(method, path, agent string) answer {
		return them.do(method, path, nil, http.Header{"User-Agent": {agent}})
	}
	for _, c := range []struct{ method, agent string }{
		{http.MethodGet, browserName}, {http.MethodHead, browserName}, {http.MethodGet, "WhatsApp/2.24.1 A"}, {http.MethodGet, "facebookexternalhit/1.1"},
		{http.MethodGet, "Mozilla/5.0 (compatible; bingbot/2.0)"}, {http.MethodGet, "Slackbot-LinkExpanding 1.0"}, {http.MethodGet, browserName},
	} {
		r := as(c.method, path, c.agent)
		if r.status != http.StatusFound || r.to() != "https://negozio.example/%C3%A8?a=1&b=2#c" {
			t.Fatalf("%s: %d to %q", c.agent, r.status, r.to())
		}
		for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Set-Cookie": ""} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
	var n int
	w.must(w.sql.QueryRow("select clicks + machines from link").Scan(&n))
	if n != 0 {
		t.Errorf("the redirects wrote %d clicks themselves", n)
	}
	w.must(w.links.Flush(context.Background()))
	all, err := w.store.Tenant(w.Client().ID()).Details(context.Background(), []puntuale.MessageID{m.ID})
	w.must(err)
	if l := all[0].Links; len(l) != 1 || l[0].Clicks != 2 || l[0].Machines != 5 || l[0].Clicked.IsZero() {
		t.Errorf("%+v", l)
	}
	if page := w.visitor(w.clients[puntuale.Owner]).get("/c/" + w.Client().ID().String() + "/messages/" + m.ID.String()).body; !strings.Contains(page, "Ha aperto un link") {
		t.Errorf("the message's page: %s", page)
	}

	p := w.store.Partner(w.partner)
	w.must(p.SetBrand(context.Background(), puntuale.Brand{Name: "Messaggi Aurora", Host: "sms.aurora.example", Colour: "#aa3344"}))
	w.must(p.ConfirmHost(context.Background(), "sms.aurora.example"))
	_, err = w.Client().Erase(context.Background(), m.Phone)
	w.must(err)
	for _, gone := range []string{path, "/r/23456789", "/r/" + strings.Repeat("a", 500), "/r/%00"} {
		r := them.do(http.MethodGet, gone, nil, http.Header{"Host": {"sms.aurora.example"}})
		if r.status != http.StatusNotFound || !strings.Contains(r.body, "Messaggi Aurora") || r.header.Get("Set-Cookie") != "" {
			t.Errorf("%.20s: %d %s", gone, r.status, r.body)
		}
	}
}

// TestLinksNeedAddressSaid: without a public address, the settings and the preview in the editor say that texts stay as they are.
func TestLinksNeedAddressSaid(t *testing.T) {
	t.Parallel()
	for public, says := range map[string]bool{"": true, "https://app.example": false} {
		t.Run(public, func(t *testing.T) {
			t.Parallel()
			w := newWorldAt(t, public)
			v := w.visitor(w.clients[puntuale.Owner])
			partner := w.visitor(w.partners[puntuale.Owner])
			for _, page := range []string{v.get(w.pages + "/settings").body, partner.get("/partner/clients/" + w.client.String() + "/settings").body} {
				if text := words(page); strings.Contains(text, "Il servizio non ha un indirizzo pubblico: finché manca, i testi restano come sono.") != says || !strings.Contains(page, `name="track_links"`) {
					t.Errorf("the settings: %s", text)
				}
			}
			form := formOf(v.get(w.pages + "/sequences/new?like=welcome").body)
			form.Set("steps[0].text", "Vedi https://negozio.example/x")
			form.Set("do", "preview")
			for choice, asks := range map[string]bool{"yes": true, "no": false} {
				form.Set("track_links", choice)
				if text := words(v.htmx(w.pages+"/sequences/draft", form).body); strings.Contains(text, "il servizio non ha un indirizzo pubblico, quindi il testo parte com'è") != (says && asks) {
					t.Errorf("the preview with %q: %s", choice, text)
				}
			}
		})
	}
}
