//go:build !nosocket

package web_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/connector/socket"
	"puntuale/internal/connector/socket/whatsapptest"
	"puntuale/internal/control"
	"puntuale/internal/intake"
)

const shopNumber = "393330000001"

// link makes the owner link real numbers to the test's WhatsApp server. It returns this server, and the account of the
// shop's number.
func (o *owner) link(t *testing.T) (*whatsapptest.Network, *whatsapptest.Account) {
	t.Helper()
	w, net := o.w, whatsapptest.New(t)
	net.FewKeys()
	quiet := slog.New(slog.DiscardHandler)
	o.numbers = socket.New(socket.Config{
		Database: func(ctx context.Context) (socket.Database, error) {
			db, postgres, err := w.store.WhatsApp(ctx)
			return socket.Database{DB: db, Postgres: postgres}, err
		},
		Seal: w.vault.Seal, Unseal: w.vault.Open, IDKey: []byte("of the installation"), Known: w.store, Report: o.manager.Report,
		Take: intake.New(intake.Config{Store: w.store, Clock: w.clock, Logger: quiet}).Take, HTTP: net.HTTPClient(), Clock: w.clock, Logger: quiet,
	})
	t.Cleanup(o.stopNumbers)
	return net, net.Account(shopNumber)
}

// stopNumbers closes the sessions, and then stops the connector of the real numbers.
func (o *owner) stopNumbers() {
	o.manager.Stop(context.Background())
	o.numbers.(*socket.Connector).Stop()
}

// TestPairing links a client's number through the page, with a phone at the test's WhatsApp server. It uses the QR
// code, which the page updates by itself, and a typed code. The page shows each change without a reload, and says what
// to do. When the phone's owner unlinks the device, the page also shows this.
func TestPairing(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o := w.own(t)
		_, shop := o.link(t)
		says := map[string][]string{
			"it": {"Collega con codice QR", "In linea", "Scollegato dal telefono", "collega di nuovo il numero", "Ottieni il codice", "Interrompi"},
			"en": {"Link by QR code", "Online", "Unlinked by the phone", "link the number again", "Get the code", "Stop"},
		}[b.look.language]
		s, page := w.newSession("Segreteria", puntuale.Socket, false)
		code := func() string {
			found, err := w.Client().Session(context.Background(), s.ID.String())
			w.must(err)
			if found.Code == nil {
				return ""
			}
			return found.Code.Text
		}
		shown := `document.querySelector(".pairing .qr path")?.getAttribute("d")`

		b.signIn(w.clients[puntuale.Staff])
		b.open(page)
		b.check("unlinked")
		b.leaves(func() { b.press(says[0]) })
		b.ticking(`document.querySelector(".pairing .qr path")`)
		first := evaluate[string](b, shown)
		if first != drawn(t, code()) {
			t.Error("the picture is not that of the code")
		}
		if r := w.visitor(w.clients[puntuale.Staff]).get(page); r.header.Get("Cache-Control") != "no-store" || !strings.Contains(r.body, first) {
			t.Errorf("a page with a code may be kept: %q", r.header.Get("Cache-Control"))
		}
		if r := w.visitor(w.clients[puntuale.Reader]).get(page); strings.Contains(r.body, "qr") && strings.Contains(r.body, first) {
			t.Error("who may only look sees a code, which would link a phone")
		}
		b.check("qr")
		for range 2 { // WhatsApp's first code is valid for a minute, and each later code for 20 seconds
			old := code()
			w.clock.Advance(time.Minute)
			b.ticking(shown + ` && ` + shown + ` !== ` + quote(drawn(t, old)))
			if now := code(); now == old || evaluate[string](b, shown) != drawn(t, now) {
				t.Error("the page does not show the code that is valid now")
			}
		}
		evaluate[bool](b, `(globalThis.stays = true)`)
		if err := shop.ScanQR(t.Context(), code()); err != nil {
			t.Fatal(err)
		}
		b.ticking(`document.querySelector(".link-state .tag-ok")?.innerText === ` + quote(says[1]))
		b.until(`document.querySelector("main [data-phone='+` + shopNumber + `']")`)
		if !evaluate[bool](b, `globalThis.stays === true`) {
			t.Error("the page was loaded anew")
		}
		b.check("online")

		shop.Kick(whatsapptest.Removed)
		b.ticking(`document.querySelector(".link-state .tag-bad")?.innerText === ` + quote(says[2]))
		b.reads(says[3])
		b.check("logged-out")

		b.do(chromedp.Navigate(w.base + page))
		b.tap(".link-state details summary")
		b.fill("phone", "+"+shopNumber)
		b.leaves(func() { b.press(says[4]) })
		b.ticking(`/^[0-9A-Z]{4}-[0-9A-Z]{4}$/.test(document.querySelector(".pairing-code")?.innerText)`)
		b.check("code")
		if err := shop.EnterCode(t.Context(), b.text(".pairing-code")); err != nil {
			t.Fatal(err)
		}
		b.ticking(`document.querySelector(".link-state .tag-ok")`)
	})
}

// TestLinkingPage: somebody who has no account links the client's number through the page whose address they got. The page
// is in the partner's brand and in the reader's language. Only a button begins to link.
func TestLinkingPage(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o := w.own(t)
		_, shop := o.link(t)
		says := map[string][]string{
			"it": {"Crea una pagina di collegamento", "Mostra il codice QR", "finisce con 0001", "già stata usata", "Sei proprio su quel telefono? Usa un codice da scrivere", "Ottieni il codice", "numero di telefono valido", "Pagina di collegamento creata", "sta arrivando"},
			"en": {"Make a linking page", "Show the QR code", "ends with 0001", "used already", "Are you on that very phone? Use a code to type", "Get the code", "valid phone number", "Linking page made", "is coming"},
		}[b.look.language]
		w.must(w.store.Partner(w.partner).SetBrand(context.Background(), puntuale.Brand{Name: "Messaggi Aurora", Colour: "#aa3344"}))
		s, page := w.newSession("Segreteria", puntuale.Socket, false)
		state := func() control.Session {
			found, err := w.Client().Session(context.Background(), s.ID.String())
			w.must(err)
			return found
		}
		leave := func() { command(b, network.ClearBrowserCookies, cdp.Empty{}) }
		offered := func() string {
			b.signIn(w.clients[puntuale.Staff])
			b.open(page)
			b.press(says[0])
			b.until(`document.querySelector(".secret-text")`)
			b.check("made")
			address := b.text(".secret-text")
			path, ok := strings.CutPrefix(address, w.base)
			if !ok || !strings.HasPrefix(path, control.LinkingPath) {
				t.Fatalf("the address is %q", address)
			}
			leave()
			return path
		}
		path := offered()
		shown := `document.querySelector("#linking .qr path")?.getAttribute("d")`
		b.open(path)
		b.reads("Messaggi Aurora")
		b.check("ready")
		if state().State != puntuale.LinkUnlinked {
			t.Error("opening the page began to link")
		}
		b.leaves(func() { b.press(says[1]) })
		b.until(shown + ` === ` + quote(drawn(t, state().Code.Text)))
		b.check("qr")
		old := state().Code.Text
		w.clock.Advance(time.Minute)
		b.ticking(shown + ` && ` + shown + ` !== ` + quote(drawn(t, old)))
		shop.RequirePasskey(true)
		if err := shop.ScanQR(t.Context(), state().Code.Text); !errors.Is(err, whatsapptest.ErrPasskey) {
			t.Fatal(err)
		}
		b.ticking(`document.querySelector("#linking .notice-warn") && document.querySelector("#linking form button")`)
		if text := b.text("#linking"); !strings.Contains(text, "passkey") || strings.Contains(text, says[8]) {
			t.Errorf("asked for a passkey, the page says %q", text)
		}
		b.check("passkey")
		shop.RequirePasskey(false)
		b.leaves(func() { b.press(says[1]) })
		b.until(shown)
		evaluate[bool](b, `(globalThis.stays = true)`)
		if err := shop.ScanQR(t.Context(), state().Code.Text); err != nil {
			t.Fatal(err)
		}
		b.ticking(`document.querySelector("#linking .notice-ok")`)
		b.reads(says[2])
		for state().State != puntuale.LinkOnline { // the login after the pairing must not change what the reader sees
			w.clock.Advance(100 * time.Millisecond)
		}
		if !evaluate[bool](b, `globalThis.stays === true`) {
			t.Error("the page was loaded anew")
		}
		b.check("done")
		b.open(path)
		b.reads(says[3])
		b.check("used")

		shop.Kick(whatsapptest.Removed)
		for state().State != puntuale.LinkUnlinked {
			w.clock.Advance(100 * time.Millisecond)
		}
		path = offered()
		b.open(path)
		b.leaves(func() { b.press(says[4]) })
		b.fill("phone", "123")
		b.press(says[5])
		b.reads(says[6])
		b.check("no-phone")
		b.fill("phone", "+"+shopNumber)
		b.leaves(func() { b.press(says[5]) })
		b.until(`/^[0-9A-Z]{4}-[0-9A-Z]{4}$/.test(document.querySelector(".pairing-code")?.innerText)`)
		b.check("code")
		if err := shop.EnterCode(t.Context(), b.text(".pairing-code")); err != nil {
			t.Fatal(err)
		}
		b.ticking(`document.querySelector("#linking .notice-ok")`)
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/audit")
		b.reads(says[7])
		b.check("audit")
	})
}
