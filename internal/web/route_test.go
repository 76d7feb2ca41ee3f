package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/web"
)

// TestRoutes requests every route as each kind of person. A visitor without a sign-in is redirected to the sign-in
// page. A person without the needed role gets a page that says this. A page of another client is byte for byte the same
// as the page "not found". All other answers are allowed.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nobody := w.visitor(0)
	type who struct {
		name string
		v    *visitor
		side string
		role puntuale.Role
		own  bool // true: the user belongs to the world's client, or to its partner
	}
	all := []who{{"a stranger", w.visitor(w.foreignOwner), "client", puntuale.Owner, false}}
	for role := puntuale.Reader; role <= puntuale.Owner; role++ {
		inside := w.visitor(w.partners[role])
		if r := inside.post("/partner/clients/"+w.client.String()+"/enter", nil); r.status != http.StatusSeeOther {
			t.Fatalf("enter: %d", r.status)
		}
		all = append(all, who{"a partner's " + role.String(), inside, "partner", role, true},
			who{"a client's " + role.String(), w.visitor(w.clients[role]), "client", role, true})
	}
	missing := func(v *visitor) string { return tidy(v.get("/c/987654321").body) }
	for _, r := range web.Routes() {
		path := concrete(r.Path, w.client)
		if r.Side != "anyone" {
			if got := nobody.do(r.Method, path, url.Values{}, nil); got.status != http.StatusSeeOther || !strings.HasPrefix(got.to(), "/login") {
				t.Errorf("%s %s without signing in: %d %s", r.Method, r.Path, got.status, got.to())
			}
		}
		for _, someone := range all {
			if r.Side == "anyone" || r.Path == "/logout" || r.Path == "/leave" || strings.HasPrefix(r.Path, "/me/") && r.Method == http.MethodPost {
				// Everybody may request this route, or the request would sign the user out, leave the dashboard, or
				// change the account.
				continue
			}
			got := someone.v.do(r.Method, path, url.Values{}, nil)
			name := fmt.Sprintf("%s %s as %s", r.Method, r.Path, someone.name)
			switch {
			case r.Side == "client" && !someone.own, r.Side == "partner" && someone.side != "partner":
				if got.status != http.StatusNotFound || tidy(got.body) != missing(someone.v) {
					t.Errorf("%s: %d, want the page that is not there", name, got.status)
				}
			case someone.role < r.Role:
				if got.status != http.StatusForbidden {
					t.Errorf("%s: %d, want 403", name, got.status)
				}
			case got.status == http.StatusForbidden || got.status >= 500 || strings.HasPrefix(got.to(), "/login"):
				t.Errorf("%s: %d %s", name, got.status, got.to())
			}
		}
	}
	// A partner's user who has not entered the dashboard is asked to enter, and cannot do anything else.
	outside := w.visitor(w.partners[puntuale.Owner])
	for _, r := range web.Routes() {
		if r.Side != "client" {
			continue
		}
		got := outside.do(r.Method, concrete(r.Path, w.client), url.Values{}, nil)
		if r.Method == http.MethodPost && got.status != http.StatusForbidden || r.Method == http.MethodGet && !strings.Contains(got.body, "/partner/clients/"+w.client.String()+"/enter") {
			t.Errorf("%s %s without entering: %d", r.Method, r.Path, got.status)
		}
	}
}

var wildcard = regexp.MustCompile(`\{[a-z]+\}`)

// concrete fills a path with the client's id. All other ids in the path do not exist.
func concrete(path string, client puntuale.ClientID) string {
	path = strings.Replace(path, "/c/{client}", "/c/"+client.String(), 1)
	return wildcard.ReplaceAllString(strings.ReplaceAll(path, "{$}", ""), "987654")
}

// TestCrossSite: if another site makes a browser send a request, the server does not carry it out.
func TestCrossSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	for _, r := range web.Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		for name, header := range map[string]http.Header{
			"Sec-Fetch-Site": {"Sec-Fetch-Site": {"cross-site"}},
			"Origin":         {"Sec-Fetch-Site": nil, "Origin": {"https://evil.example"}},
		} {
			if got := v.do(r.Method, concrete(r.Path, w.client), url.Values{}, header); got.status != http.StatusForbidden {
				t.Errorf("%s from another site by %s: %d", r.Path, name, got.status)
			}
		}
	}
	if r := v.get("/partner"); r.status != http.StatusOK {
		t.Errorf("afterwards: %d", r.status)
	}
}
