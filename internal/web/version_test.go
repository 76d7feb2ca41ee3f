package web_test

import (
	"context"
	"html"
	"net/http"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
)

// TestTwoTabs: of two tabs with one sequence the second to save sees both texts, saves nothing, and then decides.
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

// TestTwoTabsOfSmallForms: the same for what else people edit.
func TestTwoTabsOfSmallForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sessions, _, err := w.Client().Sessions(context.Background(), control.Page{Limit: "1"})
	w.must(err)
	session := w.pages + "/sessions/" + sessions[0].ID.String()
	user := w.pages + "/users/" + w.clients[puntuale.Reader].String()
	account := "/partner/clients/" + w.client.String() + "/edit"
	for _, c := range []struct {
		who           puntuale.LoginID
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
