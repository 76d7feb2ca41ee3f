package web_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
)

// arrives waits until the path of the browser's page ends with this text.
func (b *browser) arrives(path string) {
	b.t.Helper()
	b.until(`location.pathname.endsWith(` + quote(path) + `) && document.readyState === "complete"`)
}

// keysStory creates a key on the browser's present page. The page shows the key once. Then the story rotates and
// revokes the key.
func (b *browser) keysStory(prefix string) {
	b.t.Helper()
	here := evaluate[string](b, `location.pathname`)
	b.tap("details summary:has(+ form[action$='/keys'])")
	b.tap("form[action$='/keys'] button")
	b.until(`document.querySelector("form[action$='/keys'] .fault") && document.activeElement?.name === "name"`)
	b.fill("name", "gestionale")
	b.tap("form[action$='/keys'] button")
	b.until(`document.querySelector(".secret-text")?.innerText.startsWith(` + quote(prefix) + `)`)
	first := b.text(".secret-text")
	b.check("key")
	b.tap("main .btn-primary")
	b.until(`location.pathname === ` + quote(here) + ` && document.readyState === "complete" && document.querySelector(".row-item")`)
	if strings.Contains(evaluate[string](b, `document.documentElement.outerHTML`), first) {
		b.t.Error("the key is shown again")
	}
	b.tap(".row-item:last-child [data-open^=rotate]")
	b.check("key-rotate")
	b.tap("dialog[open] [type=submit]")
	b.until(`document.querySelector(".secret-text")?.innerText.startsWith(` + quote(prefix) + `)`)
	second := b.text(".secret-text")
	if !b.w.works(first) || !b.w.works(second) || first == second {
		b.t.Error("after a rotation one of the keys does not work")
	}
	b.tap("main .btn-primary")
	b.until(`location.pathname === ` + quote(here) + ` && document.readyState === "complete" && document.querySelector(".row-item")`)
	b.tap(".row-item:last-child [data-open^=revoke]")
	b.tap("dialog[open] .btn-danger")
	b.until(`document.querySelector(".toast-box")`)
	if b.w.works(second) {
		b.t.Error("a revoked key works")
	}
}

// teamStory invites a user on the browser's present page, changes the user's role, and removes the user.
func (b *browser) teamStory() {
	b.t.Helper()
	here := evaluate[string](b, `location.pathname`)
	b.tap(".head-actions .btn-primary")
	b.arrives("/new")
	b.fill("email", "nuova", "name", "Nuova Persona")
	b.tap("main form .btn-primary")
	b.until(`document.querySelector("#f-email-fault") && document.activeElement?.name === "email"`)
	if got := evaluate[string](b, `document.querySelector("[name=name]").value`); got != "Nuova Persona" {
		b.t.Errorf("what was typed became %q", got)
	}
	b.fill("email", "nuova@example.com")
	b.tap("[name=role][value=reader]")
	b.tap("main form .btn-primary")
	b.until(`document.querySelector(".secret-text")?.innerText.includes("/invitation?t=")`)
	b.check("user")
	b.open(here)
	b.press("Nuova Persona")
	b.tap("[name=role][value=staff]")
	b.tap("main form .btn-primary")
	b.arrives(here)
	b.press("Nuova Persona")
	b.until(`document.querySelector("[name=role][value=staff]")?.checked`)
	b.tap("[data-open=delete-user]")
	b.check("user-delete")
	b.tap("dialog[open] .btn-danger")
	b.arrives(here)
	b.until(`!document.querySelector("table").innerText.includes("Nuova Persona")`)
}

// TestPartnerSettles changes a client, its keys, the partner's users and the brand. Then it checks that the client's
// pages show the brand.
func TestPartnerSettles(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		page := "/partner/clients/" + w.client.String()
		b.signIn(w.partners[puntuale.Owner])
		b.open(page + "/edit")
		b.fill("credits", "molti", "daily_api_cap", "-5", "timezone", "Marte")
		b.tap("main form .btn-primary")
		b.until(`document.querySelectorAll(".fault").length === 3 && document.activeElement?.name === "credits"`)
		b.check("edit-refused")
		b.fill("credits", "1500", "daily_api_cap", "250", "timezone", "Europe/London", "refill_period", puntuale.RefillMonthly, "profile", puntuale.ProfileMonthly,
			"expiration_date", "2027-03-01", "active_features", "webhook\ncsv")
		b.tap("main form .btn-primary")
		b.arrives(page)
		var snapshot account.Snapshot
		if err := json.Unmarshal([]byte(evaluate[string](b, `document.querySelector(".code-block code").textContent`)), &snapshot); err != nil {
			t.Fatal(err)
		}
		if snapshot.Credits != "1500" || snapshot.Refill != puntuale.RefillMonthly || snapshot.Profile != puntuale.ProfileMonthly || *snapshot.Expires != "2027-03-01" || len(snapshot.Features) != 2 {
			t.Errorf("the snapshot is %+v", snapshot)
		}
		b.tap(`details:has(.code-block) summary`)
		b.check("snapshot")
		b.keysStory("ck_")
		b.open("/partner/keys")
		b.keysStory("pk_")

		b.open("/partner/users")
		b.teamStory()

		b.open("/partner/brand")
		b.fill("name", "Messaggi Aurora", "colour", "#7a1fa2", "host", "http://no")
		logo := filepath.Join(t.TempDir(), "logo.png")
		if err := os.WriteFile(logo, onePixel, 0o600); err != nil {
			t.Fatal(err)
		}
		b.tap("main form .btn-primary")
		b.until(`document.querySelector("#f-host-fault") && document.activeElement?.name === "host"`)
		b.check("brand-refused")
		b.fill("host", "messaggi.aurora.example")
		b.do(chromedp.SetUploadFiles(chromedp.CSS("[name=logo]"), []string{logo}))
		b.tap("main form .btn-primary")
		b.until(`document.querySelector(".toast-box") && document.querySelector("img.brand-logo")`)
		b.check("brand")
		b.signIn(w.clients[puntuale.Owner])
		b.until(`document.querySelector(".brand-name").textContent === "Messaggi Aurora" && document.querySelector("img.brand-logo")`)
		if strings.Contains(evaluate[string](b, `document.documentElement.outerHTML`), "Puntuale") {
			t.Error("the client's page names us")
		}
		b.check("brand-client")
	})
}

// TestClientSettles creates and revokes a key, adds and removes a user, chooses a session's default sequences, and
// exports and imports a sequence.
func TestClientSettles(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		id := w.sequence(appointment())
		sessions, _, err := w.Client().Sessions(context.Background(), request.Page{})
		w.must(err)
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/keys")
		b.keysStory("ck_")
		b.open(w.pages + "/users")
		b.teamStory()

		b.open(w.pages + "/sessions/" + sessions[0].ID.String())
		b.fill("start", id)
		b.tap("form[action$='/sequences'] button")
		b.until(`document.querySelector(".toast-box")`)
		chosen, err := w.Client().Session(context.Background(), sessions[0].ID.String())
		w.must(err)
		if chosen.Start.String() != id || chosen.Stop != 0 {
			t.Errorf("the default pair is %d and %d", chosen.Start, chosen.Stop)
		}

		b.open(w.pages + "/sequences/" + id)
		b.tap("form[action$='/copy'] button")
		b.until(`/\/sequences\/\d+\/edit$/.test(location.pathname) && document.querySelectorAll(".step").length === 3`)
		file := evaluate[string](b, `fetch(`+quote(w.pages+"/sequences/"+id+"/export")+`).then(r => r.text())`)
		b.open(w.pages + "/sequences/import")
		b.fill("content", strings.Replace(file, `"timing"`, `"tempo"`, 1))
		b.tap("main form .btn-primary")
		b.until(`document.querySelector(".fault")`)
		b.check("import-refused")
		b.open(w.pages + "/sequences/import")
		b.fill("content", file)
		b.tap("main form .btn-primary")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.querySelectorAll(".seq-plan li").length === 3`)
		for _, snippet := range []string{"curl", "JavaScript", "PHP", "Python"} {
			b.until(`[...document.querySelectorAll(".snippet pre")].some(e => e.ariaLabel === ` + quote(snippet) + ` && e.textContent.includes("/api/start/") && e.textContent.includes("data_appuntamento"))`)
		}
		b.open(w.pages + "/audit")
		b.check("audit")
	})
}
