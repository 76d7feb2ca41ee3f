package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

func TestRolesAreChecked(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":             "--roles: must name at least one of api, web, dispatch",
		" , ":          "--roles: must name at least one of api, web, dispatch",
		"web":          "",
		"api,mail":     `--roles: "mail" is not one of api, web, dispatch`,
		"api":          "",
		"dispatch":     "",
		" API, web":    "",
		"dispatch,api": "",
	} {
		term := newConsole(t, nil)
		code := term.run(context.Background(), []string{"config", "--roles=" + given})
		if got := term.errs.String(); want == "" && code != exitDone || want != "" && (code != exitUsage || !strings.Contains(got, want)) {
			t.Errorf("%q: exit code %d, %s", given, code, got)
		}
	}
	if got := newConsole(t, nil).setting(t, "roles"); got != `roles = "api,web,dispatch" # default` {
		t.Errorf("without a word of it: %s", got)
	}
}

// TestRolesApart: one process answers calls and another process sends, on one SQLite file. A second process with the
// server role dispatch is refused.
func TestRolesApart(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	node := func(roles string) (base string, r *running) {
		t.Helper()
		r = start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data", "--roles", roles)
		return r.logged.waitFor(t, `"url":"([^"]+)"`), r
	}
	api, calls := node("api,web")
	sends, sender := node("dispatch")
	for base, want := range map[string]struct{ ready, figures, log string }{
		api:   {`"roles":["api","web"]`, `puntuale_role{role="api"} 1`, `"roles":"api,web"`},
		sends: {`"roles":["dispatch"]`, `puntuale_role{role="dispatch"} 1`, `"roles":"dispatch"`},
	} {
		if status, body := call(t, "GET", base+"/readyz", "", ""); status != http.StatusOK || !strings.Contains(body, want.ready) {
			t.Errorf("/readyz: %d %s, want %s", status, body, want.ready)
		}
		if _, body := call(t, "GET", base+"/metrics", "", ""); !strings.Contains(body, want.figures) || strings.Count(body, "\npuntuale_role{") != strings.Count(want.ready, ",")+1 {
			t.Errorf("the figures lack %s, or have more", want.figures)
		}
		if log := calls.logged.String() + sender.logged.String(); !strings.Contains(log, want.log) {
			t.Errorf("the log lacks %s", want.log)
		}
	}
	for _, path := range []string{"/api/sequences", "/openapi.json", "/docs", "/"} {
		if status, body := call(t, "GET", sends+path, "", ""); status != http.StatusNotFound || !strings.Contains(body, "without the role api") {
			t.Errorf("%s of a server without api: %d %s", path, status, body)
		}
	}
	key := term.besideServer(t)(t, "", "partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
	_, body := call(t, "POST", api+"/api/client/create", key, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	key = field(t, body, "api_key")
	if status, body := call(t, "POST", api+"/api/sequences", key, `{"name": "s", "steps": [{"text": "ciao", "timing": {"anchor": "start", "offset": {"amount": 0}}}]}`); status != http.StatusOK {
		t.Fatalf("create a sequence: %d %s", status, body)
	}
	if status, body := call(t, "POST", api+"/api/start/1", key, `{"phone": "+393331234567"}`); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, body)
	}
	eventually(t, "the other process sent the message", func() bool {
		_, figures := call(t, "GET", sends+"/metrics", "", "")
		return strings.Contains(figures, `outcome="sent"} 1`)
	})
	second := newConsole(t, nil)
	second.dir = term.dir
	if code := second.run(context.Background(), []string{"serve", "--addr", "127.0.0.1:0", "--data", "data"}); code != exitFailed || !strings.Contains(second.errs.String(), "another process dispatches") {
		t.Errorf("a second dispatching server: exit code %d, %s", code, second.errs.String())
	}
	if code := sender.end(); code != exitDone {
		t.Errorf("the sending server ended with %d", code)
	}
	if status, body := call(t, "GET", api+"/readyz", "", ""); status != http.StatusOK {
		t.Errorf("a server of calls does not depend on another that sends: %d %s", status, body)
	}
}

// TestOperatorShowsServers: the page shows the versions of all servers, those too that do not send.
func TestOperatorShowsServers(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	sender := start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data", "--roles", "dispatch", "--metrics-addr", "127.0.0.1:0")
	page := "http://" + sender.logged.waitFor(t, `"serving figures","addr":"([^"]+)"`) + "/operator"
	for range 2 {
		start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data", "--roles", "api,web").logged.waitFor(t, `"url":"([^"]+)"`)
	}
	_, text := answer(t, "GET", page)
	for _, want := range []string{"<tr><td>development</td><td>api,web</td><td>2</td></tr>", "<tr><td>development</td><td>dispatch</td><td>1</td></tr>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if rows := serversShown([]string{"ABC 1.0.0 api", "ABCDE", "DEF 1.1.0 api"}, "1.1.0"); len(rows) != 3 || !rows[0].Bad || rows[1].Bad || !rows[2].Bad || rows[2].Cells[2] != "1" {
		t.Errorf("servers of other versions: %+v", rows)
	}
}
