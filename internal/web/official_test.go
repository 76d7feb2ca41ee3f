package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// TestWebhookAddress: what is to be pasted at Meta is the service's public address where it is set, and what the reader's
// browser says otherwise. An address that Meta would not take is shown with a warning.
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
			header.Set("Cookie", strings.Split(signedIn.header.Get("Set-Cookie"), ";")[0]) // whatever a jar thinks of the host
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

// TestReplaceKeys: one key is replaced alone, the others stay, and none is shown again.
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
