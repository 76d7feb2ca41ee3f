package web_test

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/web/view"
)

// TestDevicePage: somebody creates a session that sends through phones. The page immediately shows its code, as a
// picture and as text. The page updates itself until a phone is linked, and then lists the phone. Before it unlinks the
// phone, it explains what happens to the phone's messages.
func TestDevicePage(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		d := w.newDesk()
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sessions/new")
		b.fill("name", "Reception")
		b.tap("[value=device]")
		b.check("new")
		b.tap("main form .btn-primary")
		b.until(`document.querySelector(".pairing-code") && /sessions\/[0-9]+$/.test(location.pathname)`)
		b.check("code")
		code := b.text(".pairing-code")
		if got := evaluate[string](b, `document.querySelector(".pairing .qr path").getAttribute("d")`); got != drawn(t, w.base+"/phone?p=agenzia-aurora#code="+url.QueryEscape(code)) {
			t.Error("the picture is another address")
		}
		page := evaluate[string](b, `location.pathname`)
		ctx := context.Background()
		phone, token, err := w.control.LinkDevice(ctx, control.NewDevice{Code: code, Name: "Pixel di Anna", Assisted: true})
		w.must(err)
		b.ticking(`document.querySelector(".devices") && document.querySelector(".link-state .tag-ok")`)
		b.check("linked")

		id := page[strings.LastIndex(page, "/")+1:]
		d.session, err = w.Client().Session(ctx, id)
		w.must(err)
		message := d.due("+393331234500", "Ciao")
		caller, err := w.control.Authenticate(ctx, token)
		w.must(err)
		device, err := caller.Device()
		w.must(err)
		_, err = device.Take(ctx, control.TakeCall{ID: "1", Message: message})
		w.must(err)
		b.open(page)
		b.until(`document.querySelector(".devices").innerText.includes("Pixel di Anna")`)
		b.check("holds")
		b.tap(".devices a")
		b.until(`location.pathname.endsWith("/unlink") && document.querySelector(".notice-warn")`)
		b.check("unlink")
		b.tap("main form .btn-danger")
		b.until(`location.pathname === ` + quote(page) + ` && document.querySelector(".link-state .tag-bad")`)
		b.check("unlinked")
		if _, err := w.control.Authenticate(ctx, token); puntuale.CodeOf(err) != puntuale.CodeUnauthorized {
			t.Errorf("the token of phone %d is worth something: %v", phone.ID, err)
		}
	})
}

// TestFirstMinute: an invited person sets a password, adds a number that sends by hand, prepares a message and reports
// it as sent. All of this works on one phone with a touch screen.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	d := w.newDesk()
	team, err := w.newPartnerHandle().TeamOf(t.Context(), w.client.String())
	w.must(err)
	_, invitation, err := team.Invite(t.Context(), account.NewUser{Email: "nuova@example.com", Role: "owner"})
	w.must(err)
	b := newBrowser(t, w, screen{390, 844, "light", "it"})
	windows := b.windows()
	b.open("/invitation?t=" + url.QueryEscape(invitation.Secret))
	b.fill("password", password)
	b.press("Salva ed entra")
	b.until(`location.pathname === "` + w.pages + `" && document.readyState === "complete"`)
	b.check("home")
	b.press("Menu")
	b.press("Numeri")
	b.press("Aggiungi un numero")
	b.until(`document.querySelector("[value=device]")`)
	b.fill("name", "Reception")
	b.tap("[value=device]")
	b.press("Crea")
	b.until(`document.querySelector("form[action$='/try']")`)
	b.fill("phone", "333 1234500")
	b.press("Prepara il messaggio")
	b.reads("Il messaggio è pronto sul telefono.")
	b.check("ready")
	b.press("Usa questo telefono")
	b.until(`location.pathname === "/phone"`)
	b.press("Collega")
	b.until(onCard("+393331234500", ".btn-primary"))
	b.check("list")
	b.onCard("+393331234500", ".btn-primary")
	if got, want := windows(), "https://wa.me/393331234500?text=Ciao"; !strings.HasPrefix(got, want) {
		t.Errorf("WhatsApp is opened with %s", got)
	}
	b.onCard("+393331234500", saysSent)
	b.until(`document.querySelector(".empty")?.checkVisibility()`)
	b.check("done")
	all, _, err := w.Client().Messages(t.Context(), control.MessageQuery{Phone: "+393331234500"})
	w.must(err)
	if len(all) != 1 {
		t.Fatalf("afterwards there are %d messages", len(all))
	}
	d.becomes(all[0].ID.String(), "COMPLETED")
}

// drawn returns the QR code of a text, as a page draws it.
func drawn(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.QR(text, "x").Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return between(b.String(), ` d="`, `"`)
}
