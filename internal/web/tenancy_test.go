package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/web"
)

var anyWildcard = regexp.MustCompile(`\{[a-z]+\}`)

// TestAnothers: an id in an address belongs to another client of the partner, or to another partner's client. The
// answer must be byte for byte the same as for an id that does not exist. The other client's data must not change.
func TestAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := w.everything(w.client)
	others := []things{w.everything(w.other), w.everything(w.foreignClient)}
	client := w.visitor(w.clients[puntuale.Owner])
	partner := w.visitor(w.partners[puntuale.Owner])
	before := []string{w.whole(w.other, others[0]), w.whole(w.foreignClient, others[1])}
	tried := 0
	for _, r := range web.Routes() {
		if r.Side == "anyone" || r.Side == "person" || strings.Count(r.Path, "{") == 0 {
			continue
		}
		v := client
		if r.Side == "partner" {
			v = partner
		}
		for n := range anyWildcard.FindAllString(r.Path, -1) {
			if r.Side == "client" && n == 0 {
				continue // this is the id of the client itself; TestRoutes requests paths with another client's id
			}
			for i, other := range others {
				if i == 0 && r.Side == "partner" && (n == 0 || strings.HasPrefix(r.Path, "/partner/webhooks/")) {
					continue // the partner may see this id, because this client belongs to the partner
				}
				foreign := mixed(t, r.Path, n, own, other)
				missing := mixed(t, r.Path, n, own, nowhere(other))
				for name, header := range map[string]http.Header{"a browser": nil, "htmx": {"Hx-Request": {"true"}}} {
					want := v.do(r.Method, missing, url.Values{}, header)
					got := v.do(r.Method, foreign, url.Values{}, header)
					if got.status != http.StatusNotFound || tidy(got.body) != tidy(want.body) || got.status != want.status {
						t.Errorf("%s %s for %s: %d, and %d where there is none", r.Method, foreign, name, got.status, want.status)
					}
					tried++
				}
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d were tried", tried)
	}
	for i, id := range []puntuale.ClientID{w.other, w.foreignClient} {
		if got := w.whole(id, others[i]); got != before[i] {
			t.Errorf("what belongs to client %s has changed", id)
		}
	}
}

// mixed returns a path with the client's own ids, but with the other client's id as the nth id.
func mixed(t *testing.T, path string, n int, own, other things) string {
	t.Helper()
	with := func(has things) []string {
		if strings.HasPrefix(path, "/partner/users/") { // on pages of the partner's users, only a user of another partner is foreign
			has = things{"partner-users": has["users"]}
		}
		return strings.Split(has.of(t, path), "/")
	}
	parts, theirs := with(own), with(other)
	i := -1
	for at, part := range strings.Split(path, "/") {
		if strings.HasPrefix(part, "{") {
			if i++; i == n {
				parts[at] = theirs[at]
			}
		}
	}
	return strings.Join(parts, "/")
}

// nowhere returns an id that does not exist, for each noun in has.
func nowhere(has things) things {
	none := things{}
	for noun := range has {
		none[noun] = "987654"
	}
	return none
}

// whole returns all data of a client that its pages show.
func (w *world) whole(client puntuale.ClientID, has things) string {
	w.t.Helper()
	v := w.visitor(w.ownerOf(client))
	base := "/c/" + client.String()
	if client == w.other {
		v.post("/partner/clients/"+client.String()+"/enter", nil)
	}
	var b strings.Builder
	for _, path := range []string{"/sequences", "/sequences/" + has["sequences"], "/templates", "/templates/" + has["templates"], "/sessions", "/sessions/" + has["sessions"],
		"/sessions/" + has["official"], "/keys", "/users", "/blacklist", "/bookings?day=2026-11-21", "/bookings/" + has["bookings"], "/usage", "/replies", "/contacts", "/webhooks", "/webhooks/" + has["webhooks"]} {
		r := v.get(base + path)
		if r.status != http.StatusOK {
			w.t.Fatalf("%s%s: %d", base, path, r.status)
		}
		b.WriteString(inMain(r.body))
	}
	return requests.ReplaceAllString(b.String(), "")
}
