package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/connector/sendapp/gatewaytest"
)

// TestGateway links a number at a gateway through the pages. The person chooses the kind, enters the keys, scans the
// gateway's code, and tests the connection. Then the person replaces the keys. No page shows the keys.
func TestGateway(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.own(t)
		peer := gatewaytest.New(t)
		says := map[string][]string{
			"it": {"Collega con codice QR", "In linea", "Prova il collegamento", "Tutto a posto", "Sostituisci le credenziali", "Il gateway non accetta il token di accesso"},
			"en": {"Link by QR code", "Online", "Test the connection", "All is well", "Replace the keys", "The gateway does not accept the access token"},
		}[b.look.language]
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sessions/new")
		b.fill("name", "Banco")
		b.tap("[name=kind][value=gateway]")
		b.click("main form .btn-primary")
		b.until(`document.querySelector("[name=access_token]")`)
		b.check("keys")
		b.fill("access_token", "con spazi", "base_url", "ftp://gateway")
		b.click("main form .btn-primary")
		b.until(`document.querySelectorAll(".fault").length >= 2`)
		b.check("faults")
		b.fill("access_token", gatewaytest.Token, "base_url", peer.URL)
		b.click("main form .btn-primary")
		b.until(`document.querySelector(".link-state")`)
		b.check("unlinked")
		page := evaluate[string](b, "location.pathname")
		id := page[strings.LastIndex(page, "/")+1:]
		b.leaves(func() { b.press(says[0]) })
		b.ticking(`document.querySelector(".pairing .qr path")`)
		b.check("qr")
		found, err := w.Client().Session(context.Background(), id)
		w.must(err)
		peer.Scan(found.Code.Text, "390117654321")
		b.ticking(`document.querySelector(".link-state .tag-ok")?.innerText === ` + quote(says[1]))
		b.press(says[2])
		b.reads(says[3])
		b.check("online")
		b.press(says[4])
		b.until(`document.querySelector("[name=access_token]")`)
		b.check("replace")
		b.fill("access_token", "another")
		b.leaves(func() { b.click("main form .btn-primary") })
		b.ticking(`document.querySelector(".link-state .tag-bad")`)
		b.reads(says[5])
		b.check("refused")
	})
}

// TestGatewayRights: a user with the role reader sees no keys and cannot test the connection. Staff cannot replace
// keys. No page shows a key.
func TestGatewayRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.own(t)
	peer := gatewaytest.New(t)
	owner := w.visitor(w.clients[puntuale.Owner])
	made := owner.post(w.pages+"/sessions", url.Values{"kind": {"gateway"}, "name": {"Banco"}, "access_token": {gatewaytest.Token}, "base_url": {peer.URL}, "instance_id": {peer.Linked("390117654321")}})
	page := made.header.Get("Location")
	if made.status != http.StatusSeeOther || page == "" {
		t.Fatalf("%d to %q", made.status, page)
	}
	for _, path := range []string{page, page + "/gateway", w.pages + "/sessions", w.pages + "/audit"} {
		if strings.Contains(owner.get(path).body, gatewaytest.Token) {
			t.Errorf("%s shows the token", path)
		}
	}
	for role, want := range map[puntuale.Role][2]int{puntuale.Reader: {http.StatusForbidden, http.StatusForbidden}, puntuale.Staff: {http.StatusSeeOther, http.StatusForbidden}} {
		v := w.visitor(w.clients[role])
		if got := [2]int{v.post(page+"/test", nil).status, v.get(page + "/gateway").status}; got != want {
			t.Errorf("%v: %v, want %v", role, got, want)
		}
	}
}
