package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestSignIn signs in on every screen, after a wrong password.
func TestSignIn(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.open("/")
		b.check("login")
		b.fill("email", "studio@example.com", "password", "sbagliata")
		b.click("button.btn-primary")
		b.until(`document.querySelector(".fault")`)
		if got := evaluate[[]string](b, `[document.activeElement.name, ...[...document.querySelectorAll("[aria-invalid], .is-invalid")].map(e => e.name), document.querySelector(".fault").closest(".field").querySelector("input").name]`); !slices.Equal(got, []string{"password", "password", "password"}) {
			t.Errorf("the focus, the field marked and the field that the words are at: %q", got)
		}
		if got := evaluate[string](b, `document.querySelector("[name=email]").value`); got != "studio@example.com" {
			t.Errorf("what was typed became %q", got)
		}
		b.check("refused")
		b.fill("password", password)
		b.click("button.btn-primary")
		b.until(`location.pathname === "` + w.pages + `"`)
		b.check("home")
	})
}

func TestSignInIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(0)
	answers := map[string]bool{}
	for _, email := range []string{"studio@example.com", "nessuno@example.com", ""} {
		r := v.post("/login", url.Values{"email": {email}, "password": {"sbagliata"}})
		if r.status != http.StatusUnprocessableEntity {
			t.Errorf("%q: %d", email, r.status)
		}
		answers[strings.ReplaceAll(tidy(r.body), email, "")] = true
	}
	if len(answers) != 1 && len(answers) != 2 { // only the answer to the empty e-mail may differ, by an attribute value=""
		t.Errorf("%d different answers", len(answers))
	}
	if r := v.get("/partner"); r.status != http.StatusSeeOther || r.to() != "/login?next=%2Fpartner" {
		t.Errorf("without signing in: %d %s", r.status, r.to())
	}
}
