package web_test

import (
	"context"
	"html"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control/request"
)

// TestTwoTabs: one sequence is open in two tabs. The second save stores nothing, and shows both texts. Then the person
// decides which text to save.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	anna, luca := w.visitor(w.clients[puntuale.Staff]), w.visitor(w.clients[puntuale.Owner])
	address := w.pages + "/sequences/" + id
	first, second := formOf(anna.get(address+"/edit").body), formOf(luca.get(address+"/edit").body)
	first.Set("steps[0].text", "Il testo di Anna")
	second.Set("steps[0].text", "Il testo di Luca")
	if a := anna.htmx(address, first); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, mainOf(a.body))
	}
	refused := luca.htmx(address, second)
	page := html.UnescapeString(refused.body)
	if refused.status != http.StatusConflict || strings.Count(page, "Il testo di Luca") < 2 || !strings.Contains(page, "Il testo di Anna") {
		t.Errorf("%d %s", refused.status, mainOf(page))
	}
	text := func() string {
		s, err := w.Client().Sequence(context.Background(), id)
		w.must(err)
		return s.Steps[0].Text
	}
	if got := text(); got != "Il testo di Anna" {
		t.Errorf("stored: %s", got)
	}
	if a := luca.htmx(address, formOf(refused.body)); a.status != http.StatusOK || text() != "Il testo di Luca" {
		t.Errorf("saved again: %d, stored: %s", a.status, text())
	}
}

// TestTwoTabsOfQuotas: a client's refused form shows the quotas that somebody else set. Saving again changes only the
// quotas that the person changed.
func TestTwoTabsOfQuotas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	account := "/partner/clients/" + w.client.String() + "/edit"
	first := formTo(v.get(account).body, account)
	second := formTo(v.get(account).body, account)
	for name, value := range map[string]string{"name": "Studio Uno", "quotas.sessions": "21", "quotas.keys": "22"} {
		first.Set(name, value)
	}
	if a := v.htmx(account, first); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, mainOf(a.body))
	}
	second.Set("name", "Studio Due")
	second.Set("quotas.sessions", "31")
	refused := v.htmx(account, second)
	text := words(between(refused.body, `class="differs"`, "</section>"))
	if refused.status != http.StatusConflict || !strings.Contains(text, "Numeri Hai scritto 31 Salvato ora 21") || strings.Contains(text, "Chiavi API") || strings.Contains(text, "Template") {
		t.Errorf("%d %s", refused.status, text)
	}
	again := formTo(refused.body, account)
	if a := v.htmx(account, again); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, mainOf(a.body))
	}
	stored := formTo(v.get(account).body, account)
	for name, want := range map[string]string{"name": "Studio Due", "quotas.sessions": "31", "quotas.keys": "22", "quotas.users": "50"} {
		if got := stored.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestTwoTabsOfBrand: the partner's brand is open in two tabs. The second save stores nothing, and shows both brands.
// Then the person decides which brand to save. The form contains a file, so the browser sends it in parts.
func TestTwoTabsOfBrand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.partners[puntuale.Owner])
	const page = "/partner/brand"
	form := formTo(v.get(page).body, page)
	if form.Get("version") == "" {
		t.Fatalf("no version in %v", form)
	}
	save := func(form url.Values, name string) answer {
		form.Set("name", name)
		body, kind := inParts(t, form)
		return v.send(page, body, http.Header{"Content-Type": {kind}, "Hx-Request": {"true"}})
	}
	if a := save(form, "Aurora Uno"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	refused := save(form, "Aurora Due")
	text := words(refused.body)
	if refused.status != http.StatusConflict || !strings.Contains(text, "Hai scritto Aurora Due Salvato ora Aurora Uno") {
		t.Errorf("%d %s", refused.status, text)
	}
	if got := formTo(v.get(page).body, page).Get("name"); got != "Aurora Uno" {
		t.Errorf("stored: %s", got)
	}
	if a := save(formTo(refused.body, page), "Aurora Due"); a.status != http.StatusOK {
		t.Errorf("saved again: %d %s", a.status, a.body)
	}
	if got := formTo(v.get(page).body, page).Get("name"); got != "Aurora Due" {
		t.Errorf("stored in the end: %s", got)
	}
}

// inParts encodes a form as a browser encodes a form with a file.
func inParts(t *testing.T, form url.Values) (body, kind string) {
	t.Helper()
	var b strings.Builder
	parts := multipart.NewWriter(&b)
	for name, values := range form {
		for _, value := range values {
			if err := parts.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := parts.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), parts.FormDataContentType()
}

// TestTwoTabsOfSmallForms: in three smaller forms, the second save also stores nothing, and the form shows both values.
func TestTwoTabsOfSmallForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sessions, _, err := w.Client().Sessions(context.Background(), request.Page{Limit: "1"})
	w.must(err)
	session := w.pages + "/sessions/" + sessions[0].ID.String()
	user := w.pages + "/users/" + w.clients[puntuale.Reader].String()
	account := "/partner/clients/" + w.client.String() + "/edit"
	for _, c := range []struct {
		who           puntuale.UserID
		page, address string
		name          string
	}{
		{w.clients[puntuale.Owner], user, user, "name"},
		{w.partners[puntuale.Owner], account, account, "name"},
		{w.clients[puntuale.Owner], session, session + "/pace", "per_day"},
	} {
		v := w.visitor(c.who)
		form := formTo(v.get(c.page).body, c.address)
		if form.Get("version") == "" {
			t.Errorf("%s: no version in %v", c.page, form)
			continue
		}
		form.Set(c.name, "11")
		if a := v.htmx(c.address, form); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", c.page, a.status, mainOf(a.body))
		}
		form.Set(c.name, "22")
		refused := v.htmx(c.address, form)
		page := html.UnescapeString(refused.body)
		if refused.status != http.StatusConflict || !strings.Contains(page, "Hai scritto") || !strings.Contains(page, "11") || !strings.Contains(page, "22") {
			t.Errorf("%s: %d %s", c.page, refused.status, page)
		}
		if a := v.htmx(c.address, formTo(refused.body, c.address)); a.status != http.StatusOK {
			t.Errorf("%s, again: %d %s", c.page, a.status, a.body)
		}
	}
}
