package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/store/storetest"
)

// TestContactsStory: somebody adds a contact by hand and corrects it. The person checks an import and then imports the
// list. Then the person finds people by name, number and tag, and removes one contact.
func TestContactsStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		file := filepath.Join(t.TempDir(), "clienti.csv")
		w.must(os.WriteFile(file, []byte("Nome;Cellulare;Data di nascita;Tag;Consenso\r\nAnna Rossi;333 1234567;28/02/1990;cliente, newsletter;sì\r\nUgo Blu;333 7654321;;cliente;\r\nZoe;123;;;\r\nAnna;333 1234567;;;\r\n"), 0o600))
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/contacts")
		b.check("empty")
		b.click(`main a[href$="/contacts/new"]`)
		b.until(`document.querySelector("#f-phone")`)
		b.fill("phone", "3409998877", "name", "Carla Verdi", "tags", "cliente, prova", "field.0.value", "12")
		b.click("main form button.btn-primary")
		b.until(`document.querySelector(".fault")`)
		b.check("fault")
		b.fill("field.0.name", "punti", "field.1.name", "nascita", "field.1.value", "01/03/1980")
		b.click("main form button.btn-primary")
		b.until(`location.pathname.endsWith("/person") && document.querySelector("[data-toast]")`)
		b.reads("Carla Verdi")
		b.check("person")
		b.click(`main a[href$="/edit"]`)
		b.until(`document.querySelector("[name='field.1.value']")`)
		b.fill("field.1.name", "", "field.1.value", "")
		b.check("edit")
		b.click("main form button.btn-primary")
		b.until(`location.pathname.endsWith("/person") && document.querySelector("[data-toast]")`)

		b.open(w.pages + "/contacts/import")
		b.check("import")
		b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
		b.click(`.import-file [type=submit]`)
		b.until(`document.querySelector("#f-source[aria-invalid]")`)
		b.check("import-source")
		b.fill("source", "modulo in negozio")
		b.click(`.import-file [type=submit]`)
		b.until(`document.querySelector(".mapping") && document.querySelector("#import-result [formaction]")`)
		b.click("#import-result details summary")
		b.check("import-checked")
		if n, _, err := w.Client().CountContacts(t.Context(), control.ContactQuery{}, 10); err != nil || n != 1 {
			t.Errorf("a check stored: %d, %v", n, err)
		}
		b.click(`#import-result [formaction]`)
		b.until(`document.querySelector("#import-result .notice-ok")`)
		b.check("imported")
		rows := evaluate[string](b, `decodeURIComponent(document.querySelector("#import-result a[download]").href)`)
		if strings.Count(rows, "\r\n") != 3 || !strings.Contains(rows, "123") {
			t.Errorf("the rows left out: %q", rows)
		}
		b.open(w.pages + "/contacts?q=ross")
		b.reads("Anna Rossi")
		b.check("found")
		anna, _, err := w.Client().Contacts(t.Context(), control.ContactQuery{Name: "anna"}, request.Page{})
		w.must(err)
		if len(anna) != 1 || strings.Join(anna[0].Tags, ",") != "cliente,newsletter" || anna[0].Fields["data_di_nascita"].Value != "1990-02-28" {
			t.Errorf("imported: %+v", anna)
		}
		holds, err := w.Client().ConsentStatuses(t.Context(), anna[0].Phone)
		w.must(err)
		if holds[puntuale.PurposeMarketing].Change != puntuale.ConsentGrant {
			t.Errorf("her consent: %+v", holds)
		}

		mixed, err := filepath.Abs(filepath.Join("..", "roster", "testdata", "exports", "mixed.csv"))
		w.must(err)
		b.open(w.pages + "/contacts/import") // some dates have the day first and others the month, so the page asks
		b.do(chromedp.SetUploadFiles("#f-file", []string{mixed}))
		b.click(`.import-file [type=submit]`)
		b.until(`document.querySelector(".mapping [aria-invalid]") && !document.querySelector("#import-result [formaction]")`)
		b.check("import-dates")
		_ = evaluate[string](b, `document.querySelector("[name='column.2']").value = "nascita=mdy"`)
		b.click(`.import-file [type=submit]`)
		b.until(`document.querySelector("#import-result [formaction]") && document.querySelector(".mapping").innerText.includes("02/28/1990 →")`)
		b.check("import-month-first")
		b.open(w.pages + "/contacts?q=340999&tag=prova")
		b.click(".list-name")
		b.until(`location.pathname.endsWith("/person")`)
		b.click(`main a[href$="/edit"]`)
		b.until(`document.querySelector('a[href$="/delete"]')`)
		b.click(`main a[href$="/delete"]`)
		b.until(`document.querySelector(".btn-danger")`)
		b.check("delete")
		b.click(".btn-danger")
		b.until(`location.pathname.endsWith("/contacts") && document.querySelector("[data-toast]")`)
		b.check("list")
	})
}

// TestContactForm: if a person does not change a field of the form, the stored value stays the same. A value of the
// kind number is still a number.
func TestContactForm(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, driver(t), "")
			has := w.everything(w.client)
			v, reader := w.visitor(w.clients[puntuale.Staff]), w.visitor(w.clients[puntuale.Reader])
			page := w.pages + "/contacts/" + has["contacts"] + "/edit"
			form := url.Values{"name": {"Lucia Bianchi"}, "tags": {"cliente; vip"}, "field.0.name": {"nascita"}, "field.0.value": {"28/02/1990"}, "field.1.name": {"punti"}, "field.1.value": {"13"}, "field.4.name": {"note"}, "field.4.value": {"x"}}
			if shown := v.get(page).body; !strings.Contains(shown, `value="28/02/1990"`) {
				t.Errorf("the form shows a date not as its hint asks for it: %s", inMain(shown))
			}
			if r := v.post(page, form); r.status != http.StatusSeeOther {
				t.Fatalf("%d: %s", r.status, inMain(r.body))
			}
			c, err := w.Client().Contact(t.Context(), has["contacts"])
			w.must(err)
			want := map[string]puntuale.ContactField{"nascita": {Kind: puntuale.FieldDate, Value: "1990-02-28"}, "punti": {Kind: puntuale.FieldNumber, Value: "13"}, "note": {Kind: puntuale.FieldText, Value: "x"}}
			for name, f := range want {
				if c.Fields[name] != f {
					t.Errorf("%s is %+v, want %+v", name, c.Fields[name], f)
				}
			}
			if c.Name != "Lucia Bianchi" || strings.Join(c.Tags, ",") != "cliente,vip" || c.Source != "" || len(c.Fields) != 3 {
				t.Errorf("%+v", c)
			}
			for name, form := range map[string]url.Values{"a name twice": {"field.0.name": {"a"}, "field.1.name": {"a"}}, "no name": {"field.0.value": {"1"}}, "no field": {"field.0.name": {"è"}, "field.0.value": {"1"}}} {
				if r := v.htmx(page, form); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `class="fault"`) {
					t.Errorf("%s: %d %s", name, r.status, r.body)
				}
			}
			if r := w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/contacts/export"); !strings.Contains(r.body, "'+393337654321;Lucia Bianchi;") || !strings.Contains(r.body, "phone;nome;language;source;tags;nascita;note;punti") {
				t.Errorf("export: %q", r.body)
			}
			if r := v.get(w.pages + "/contacts/export"); r.status != http.StatusForbidden {
				t.Errorf("staff export: %d", r.status)
			}
			if r := reader.get(w.pages + "/contacts"); strings.Contains(inMain(r.body), "/contacts/new") || strings.Contains(r.body, "/contacts/export") {
				t.Error("a reader is offered to change something")
			}
			if r := v.get(w.pages + "/contacts?q=" + strings.Repeat("9", 300)); r.status != http.StatusUnprocessableEntity {
				t.Errorf("a long search: %d", r.status)
			}
		})
	}
}

// TestHostileContacts: pages show all values of contacts as text.
func TestHostileContacts(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	texts := hostileTexts()[:60]
	c := w.Client()
	for i, text := range texts {
		_, err := c.AddContact(t.Context(), control.NewContact{Phone: fmt.Sprintf("+39333120%04d", i), Name: text, Source: text, Fields: map[string]control.ContactValue{"campo": {Text: text}}}, control.Once[puntuale.Contact]{})
		w.must(err)
	}
	b := newBrowser(t, w, screens(t)[0])
	b.signIn(w.clients[puntuale.Staff])
	for next := w.pages + "/contacts"; next != ""; {
		b.open(next)
		b.inert("none", nil)
		next = strings.TrimPrefix(evaluate[string](b, `document.querySelector("a[rel=next]")?.href ?? ""`), w.base)
	}
	for i := range 5 {
		b.open(w.personURL(fmt.Sprintf("+39333120%04d", i)))
		b.inert("h1, .facts dd", texts[i:i+1])
	}
}
