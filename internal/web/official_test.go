package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/control"
)

// TestWebhookAddress: the page shows the address that a person must paste at Meta. It uses the service's public address
// if this is set, and otherwise the address in the reader's browser. If Meta would not accept the address, the page
// shows a warning.
func TestWebhookAddress(t *testing.T) {
	t.Parallel()
	const warning = "Meta accetta solo indirizzi https"
	behind := func(host string) http.Header {
		return http.Header{"Host": {host}, "X-Forwarded-Proto": {"https"}}
	}
	for name, test := range map[string]struct {
		public  string
		header  http.Header
		address string
		warns   bool
	}{
		"set":                    {"https://messaggi.example.com", nil, "https://messaggi.example.com", false},
		"set, with a slash":      {"https://messaggi.example.com:8443/", nil, "https://messaggi.example.com:8443", false},
		"set, without TLS":       {"http://messaggi.example.com", behind("10.0.0.5"), "http://messaggi.example.com", true},
		"set, a partner's host":  {"https://messaggi.example.com", behind("msg.aurora.example"), "https://messaggi.example.com", false},
		"behind a proxy":         {"", behind("messaggi.example.com"), "https://messaggi.example.com", false},
		"behind a proxy, inside": {"", behind("10.0.0.5:8080"), "https://10.0.0.5:8080", true},
		"a name of the house":    {"", behind("server"), "https://server", true},
		"by plain http":          {"", http.Header{"Host": {"messaggi.example.com"}}, "http://messaggi.example.com", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldAt(t, test.public)
			s, page := w.newSession("Ufficiale", puntuale.Official, false)
			v, header := w.visitor(0), test.header.Clone()
			if header == nil {
				header = http.Header{}
			}
			signedIn := v.do(http.MethodPost, "/ticket", url.Values{"t": {w.ticket(w.clients[puntuale.Owner])}}, header)
			var cookies []string // the test sends the cookies itself, because a cookie jar may refuse cookies for this host
			for _, set := range signedIn.header.Values("Set-Cookie") {
				cookies = append(cookies, strings.Split(set, ";")[0])
			}
			header.Set("Cookie", strings.Join(cookies, "; "))
			got := v.do(http.MethodGet, page, nil, header)
			if !strings.Contains(got.body, `data-copy="`+test.address+s.ID.WebhookPath()+`"`) {
				t.Errorf("%d: %s is not to be copied: %s", got.status, test.address+s.ID.WebhookPath(), between(got.body, "secret-text", "</code>"))
			}
			if strings.Contains(got.body, warning) != test.warns {
				t.Errorf("warns is not %v", test.warns)
			}
		})
	}
}

// TestReplaceKeys: a person can replace one key. The other keys do not change, and no key is shown again.
func TestReplaceKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.own(t)
	_, page := w.newSession("Ufficiale", puntuale.Official, false)
	v := w.visitor(w.clients[puntuale.Owner])
	n := o.number
	first := url.Values{"phone_number_id": {n.ID}, "business_account_id": {n.Account}, "access_token": {n.Token}, "app_secret": {n.Secret}, "verify_token": {n.Verify}}
	if a := v.post(page+"/official", first); a.status != http.StatusOK || !strings.Contains(a.body, `data-copy="`+n.Verify+`"`) {
		t.Fatalf("the first keys: %d", a.status)
	}
	works := func(want bool) {
		t.Helper()
		if a := v.post(page+"/test", nil); strings.Contains(a.body, "Tutto a posto") != want {
			t.Errorf("works is not %v: %s", want, between(a.body, `role="status"`, "</strong>"))
		}
	}
	works(true)
	n.Token = "EAAanother"
	o.peer.Set(n)
	works(false)
	form := v.get(page + "/official").body
	for _, key := range []string{graphtest.NewNumber("101").Token, n.Secret, n.Verify} {
		if strings.Contains(form, key) {
			t.Errorf("a stored key is shown again")
		}
	}
	if strings.Contains(between(form, `name="access_token"`, ">"), "required") || !strings.Contains(form, `value="`+n.ID+`"`) {
		t.Error("the form asks for keys that there are")
	}
	kept := url.Values{"phone_number_id": {n.ID}, "business_account_id": {n.Account}, "access_token": {n.Token}, "app_secret": {""}, "verify_token": {""}, "groups_api": {""}}
	if a := v.post(page+"/official", kept); a.status != http.StatusOK || !strings.Contains(a.body, "resta quello che hai dato a Meta") {
		t.Errorf("another token: %d %s", a.status, a.body)
	}
	works(true)
}

// manyTemplates returns templates in each state, with each kind of header, placeholder and button. They are like the
// templates of real businesses.
func manyTemplates() (all []graphtest.ListedTemplate) {
	header := func(format, text string) map[string]any {
		h := map[string]any{"type": "HEADER", "format": format}
		if text != "" {
			h["text"] = text
		}
		return h
	}
	buttons := func(of ...map[string]any) map[string]any { return map[string]any{"type": "BUTTONS", "buttons": of} }
	add := func(name, status, category, score, why, body string, parts ...map[string]any) *graphtest.ListedTemplate {
		t := graphtest.NewTemplate(name, body)
		t.Status, t.Category, t.Rejected = status, category, why
		t.Quality = map[string]any{"score": score}
		for _, p := range parts {
			if p["type"] == "HEADER" {
				t.Components = append([]map[string]any{p}, t.Components...)
			} else {
				t.Components = append(t.Components, p)
			}
		}
		all = append(all, t)
		return &all[len(all)-1]
	}
	add("conferma_appuntamento", "APPROVED", "UTILITY", "GREEN", "NONE", "Gentile {{1}}, il suo appuntamento è confermato per {{2}} alle {{3}}.", header("TEXT", "Appuntamento per {{1}}"),
		map[string]any{"type": "FOOTER", "text": "Studio Bianchi, via Po 1, Torino"},
		buttons(map[string]any{"type": "QUICK_REPLY", "text": "Confermo"}, map[string]any{"type": "QUICK_REPLY", "text": "Devo disdire"}, map[string]any{"type": "URL", "text": "Come arrivare", "url": "https://studio.example/{{1}}"},
			map[string]any{"type": "PHONE_NUMBER", "text": "Chiama lo studio", "phone_number": "+390111234567"}))
	add("referto_pronto", "APPROVED", "UTILITY", "YELLOW", "NONE", "Gentile {{nome}}, il suo referto del {{giorno}} è pronto.", header("DOCUMENT", "")).Format = "NAMED"
	add("open_day", "APPROVED", "MARKETING", "UNKNOWN", "NONE", "Vi aspettiamo all'open day!", header("LOCATION", ""))
	add("saldi", "PAUSED", "MARKETING", "RED", "NONE", "Saldi fino al {{1}}% su tutto il catalogo, con il codice qui sotto.", header("IMAGE", ""), buttons(map[string]any{"type": "COPY_CODE", "text": "Copia il codice"}))
	add("video_di_benvenuto", "PENDING", "MARKETING", "UNKNOWN", "NONE", "Benvenuto, {{1}}!", header("VIDEO", ""))
	add("offerta_aggressiva", "REJECTED", "MARKETING", "UNKNOWN", "INCORRECT_CATEGORY", "SOLO OGGI!!! Compra subito.")
	add("promo_vietata", "REJECTED", "MARKETING", "UNKNOWN", "SOMETHING_NEW", "Testo respinto.")
	add("sondaggio_disattivato", "DISABLED", "MARKETING", "RED", "NONE", "Come si è trovato?\n\nRisponda con un numero da 1 a 5:\n1. Male\n5. Benissimo")
	add("ricorso", "IN_APPEAL", "UTILITY", "UNKNOWN", "NONE", "In ricorso.")
	add("troppi", "LIMIT_EXCEEDED", "UTILITY", "UNKNOWN", "NONE", "Oltre il massimo.")
	add("stato_di_domani", "ARCHIVED_BY_SOMEBODY", "BRAND_NEW_CATEGORY", "PURPLE", "NONE", "Uno stato che nessuno conosce.")
	add("codice_di_accesso", "APPROVED", "AUTHENTICATION", "GREEN", "NONE", "{{1}} è il tuo codice.")
	long := add("un_nome_lungo_come_meta_li_permette_"+strings.Repeat("molto_", 20)+"lungo", "APPROVED", "UTILITY", "GREEN", "NONE", strings.Repeat("Testo senza fine, ", 50)+"https://www.example.com/"+strings.Repeat("percorso", 20))
	long.Language = "pt_BR"
	for i := range 50 {
		add(fmt.Sprintf("promemoria_%02d", i), "APPROVED", "UTILITY", "GREEN", "NONE", fmt.Sprintf("Promemoria %d per {{1}}", i))
	}
	return all
}

// cut is a script that returns elements which reach beyond their card.
const cut = `[...document.querySelectorAll(".card-list tbody *")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > e.closest(".card-list").getBoundingClientRect().right + 1).map(e => e.tagName + " " + e.innerText)`

// TestApprovedTemplates shows a business's templates as Meta lists them: their states, their looks, and the fields that
// they need.
func TestApprovedTemplates(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o := w.own(t)
		o.peer.SetTemplates(o.number.Account, manyTemplates()...)
		s, page := w.newSession("Segreteria", puntuale.Official, false)
		n := o.number
		_, err := w.Client().SetKeys(context.Background(), s.ID.String(), control.NewKeys{OfficialKeys: puntuale.OfficialKeys{
			PhoneNumberID: n.ID, AccessToken: n.Token, AppSecret: n.Secret, VerifyToken: n.Verify, BusinessAccountID: n.Account}})
		w.must(err)
		_, err = w.Client().TestSession(context.Background(), s.ID.String())
		w.must(err)
		b.signIn(w.clients[puntuale.Owner])
		b.open(page + "/templates")
		b.check("list")
		if got := evaluate[int](b, `document.querySelectorAll("tbody tr").length`); got != 50 {
			t.Errorf("%d rows", got)
		}
		evaluate[bool](b, `(document.querySelectorAll("tbody details").forEach(d => d.open = true), true)`)
		b.check("open")
		if cut := evaluate[[]string](b, cut); len(cut) > 0 {
			t.Errorf("%s: %q is cut off", b.look, cut)
		}
		b.tap(`.pager [rel=next]`)
		b.until(`document.querySelectorAll("tbody tr").length === 13`)
		evaluate[bool](b, `(document.querySelectorAll("tbody details").forEach(d => d.open = true), true)`)
		b.check("second")
		if cut := evaluate[[]string](b, cut); len(cut) > 0 {
			t.Errorf("%s: %q is cut off", b.look, cut)
		}
		b.open(w.pages + "/templates")
		b.until(`document.querySelectorAll(".approved-counts li").length === 8`)
		b.check("counts")
		b.open(w.pages + "/templates/new")
		b.check("new")
		for name, places := range map[string]int{"conferma_appuntamento": 5, "referto_pronto": 2, "open_day": 0, "saldi": 2} {
			b.fill("name", name, "text", "Ciao", "official", name+"|it")
			b.tap("[name=do][value=choose]")
			b.until(fmt.Sprintf(`document.querySelector(".approved-look") && document.querySelector("[name=official]").value === "%s|it" && document.querySelectorAll("[name^=official][name$='.text']").length === %d`, name, places))
			b.check(name)
		}
	})
}

// TestWaysPages: an owner switches Direct Send on, and the page of a message says in which way the message leaves.
func TestWaysPages(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o := w.own(t)
		s, page := w.newSession("Segreteria", puntuale.Official, false)
		n := o.number
		_, err := w.Client().SetKeys(context.Background(), s.ID.String(), control.NewKeys{OfficialKeys: puntuale.OfficialKeys{
			PhoneNumberID: n.ID, AccessToken: n.Token, AppSecret: n.Secret, VerifyToken: n.Verify, BusinessAccountID: n.Account}})
		w.must(err)
		sent, err := w.Client().Send(context.Background(), control.SingleCall{
			Phone: "+393331234567", Session: s.ID.String(), Fields: map[string]json.RawMessage{"text": json.RawMessage(`"Ci vediamo domani"`), "date": json.RawMessage(`"2027-01-10"`)},
		})
		w.must(err)
		message := w.pages + "/messages/" + sent.IDs[0].String()
		b.signIn(w.clients[puntuale.Owner])
		b.open(message)
		b.until(`document.body.textContent.includes("Meta lo rifiuterebbe") || document.body.textContent.includes("Meta would refuse it")`)
		b.check("refused")
		b.open(page)
		b.check("session")
		b.tap(`form[action$="/ways"] [name=direct_send]`)
		b.leaves(func() { b.tap(`form[action$="/ways"] button[type=submit]`) })
		b.until(`document.querySelector('form[action$="/ways"] [name=direct_send]')?.checked && !document.querySelector('form[action$="/ways"] [name=marketing_messages]').checked`)
		if found, err := w.Client().Session(context.Background(), s.ID.String()); err != nil || found.Ways != (puntuale.WaySettings{DirectSend: true}) {
			t.Errorf("%v, %+v", err, found.Ways)
		}
		b.open(message)
		b.until(`document.body.textContent.includes("Direct Send")`)
		b.check("direct")
	})
}
