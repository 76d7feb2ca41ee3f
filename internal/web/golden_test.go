package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"puntuale"
)

// Patterns of values that are different in each execution of the test.
var passing = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(staff|reader)\d+@`), "$1@"},
	{regexp.MustCompile(`ck_[A-Za-z0-9_-]+`), "ck_KEY"},
	{regexp.MustCompile(`value="[a-z2-7]{16}"`), `value="PASSWORD"`},
}

// TestPages compares at least one page of each kind with a golden file. The client has data of every kind.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	someClients(w)
	has := w.everything(w.client)
	partner, client := w.visitor(w.partners[puntuale.Owner]), w.visitor(w.clients[puntuale.Owner])
	account := "/partner/clients/" + has["clients"]
	for name, page := range map[string]struct {
		v    *visitor
		path string
	}{
		"login": {w.visitor(0), "/p/agenzia-aurora"},
		"me":    {client, "/me"},

		"partner-clients":        {partner, "/partner"},
		"partner-clients-sought": {partner, "/partner?q=porto&state=expired"},
		"partner-client":         {partner, account},
		"partner-client-new":     {partner, "/partner/clients/new"},
		"partner-client-edit":    {partner, account + "/edit"},
		"partner-client-users":   {partner, account + "/users"},
		"partner-expiries":       {partner, "/partner/expiries"},
		"partner-totals":         {partner, "/partner/totals"},
		"partner-brand":          {partner, "/partner/brand"},
		"partner-user-new":       {partner, "/partner/users/new"},
		"partner-user":           {partner, fmt.Sprintf("/partner/users/%d", w.partners[puntuale.Staff])},
		"partner-audit":          {partner, "/partner/audit"},
		"partner-enter":          {partner, w.pages + "/sequences"},

		"client-users":             {client, w.pages + "/users"},
		"client-audit":             {client, w.pages + "/audit"},
		"client-session-new":       {client, w.pages + "/sessions/new"},
		"client-session-gateway":   {client, w.pages + "/sessions/" + has["gateway"]},
		"client-session-keys":      {client, w.pages + "/sessions/" + has["gateway"] + "/gateway"},
		"client-session-delete":    {client, w.pages + "/sessions/" + has["sessions"] + "/delete"},
		"client-blacklist-import":  {client, w.pages + "/blacklist/import"},
		"client-blacklist-remove":  {client, w.pages + "/blacklist/" + has["blacklist"] + "/remove"},
		"client-template-new":      {client, w.pages + "/templates/new"},
		"client-sequence-new":      {client, w.pages + "/sequences/new?like=appointment"},
		"client-sequences-reader":  {w.visitor(w.clients[puntuale.Reader]), w.pages + "/sequences"},
		"client-session-of-reader": {w.visitor(w.clients[puntuale.Reader]), w.pages + "/sessions/" + has["sessions"]},
	} {
		got := page.v.get(page.path)
		if got.status != http.StatusOK {
			t.Errorf("%s: %d", page.path, got.status)
		}
		html := inMain(got.body)
		for _, p := range passing {
			html = p.what.ReplaceAllString(html, p.as)
		}
		golden(t, name, html)
	}
}
