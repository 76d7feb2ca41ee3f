package web_test

import (
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// importing sends the form of an import: its fields as name~value, and then the file.
func importing(v *visitor, path, file string, fields ...string) answer {
	var body strings.Builder
	form := multipart.NewWriter(&body)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "~")
		v.w.must(form.WriteField(name, value))
	}
	part, err := form.CreateFormFile("file", "lista.csv")
	v.w.must(err)
	_, err = part.Write([]byte(file))
	v.w.must(err)
	v.w.must(form.Close())
	return v.send(path, body.String(), http.Header{"Content-Type": {form.FormDataContentType()}})
}

// TestImportLooksAtTheFile: the person checks a file, saves another one under its name, and imports. What the person chose is
// about the first file, so the second one is checked first, and stored as its own check says.
func TestImportLooksAtTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	visit := w.sequence(bookedVisit())
	made, err := w.Client().CreateCampaign(t.Context(), control.NewCampaign{Name: "x", Purpose: "service", Step: &puntuale.Step{Text: "Il {{nascita:giorno}}"}}, nil, control.Once[control.Campaign]{})
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	seen := regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`)
	contacts := func() int {
		all, _, err := w.Client().Contacts(t.Context(), control.ContactQuery{}, request.Page{})
		w.must(err)
		return len(all)
	}
	for path, c := range map[string]struct {
		fields []string
		stored func() int
	}{
		"/contacts/import": {[]string{"column.0~phone", "column.1~nascita=dmy"}, contacts},
		"/bookings/import": {[]string{"sequence~" + visit, "sequence_before~" + visit, "column.0~phone", "column.1~appuntamento=dmy", "column.2~reference", "column.3~nome"}, func() int {
			_, err := w.Client().Booking(t.Context(), "new1")
			if puntuale.CodeOf(err) == puntuale.CodeNotFound {
				return 0
			}
			w.must(err)
			return 1
		}},
		"/campaigns/" + made.ID.String() + "/people": {[]string{"column.0~phone", "column.1~nascita=dmy"}, func() int {
			list, err := w.Client().RecipientsOf(t.Context(), made.ID.String())
			w.must(err)
			return list.Size
		}},
	} {
		before := c.stored()
		first := importing(v, w.pages+path, "Telefono,Data,Codice,Nome\n3331239991,28/02/2027 10:00,new1,Ada\n3331239992,03/04/2027 10:00,new2,Eva\n", "sequence~"+visit)
		key := seen.FindStringSubmatch(first.body)
		if key == nil {
			t.Fatalf("%s: %d %.600s", path, first.status, words(first.body))
		}
		fields := append([]string{"seen~" + key[1], "header~1", "header_before~1", "file_before~lista.csv"}, c.fields...)
		for _, other := range []string{"Telefono,Data,Codice,Nome\n3331239991,02/28/2027 10:00,new1,Ada\n3331239992,03/04/2027 10:00,new2,Eva\n", "Nome,Codice,Data,Telefono\nAda,new1,28/02/2027 10:00,3331239991\nEva,new2,03/04/2027 10:00,3331239992\n"} {
			got := importing(v, w.pages+path+"?do=import", other, fields...)
			if again := seen.FindStringSubmatch(got.body); got.status != http.StatusOK || again == nil || again[1] == key[1] || c.stored() != before {
				t.Errorf("%s: %d, stored %d, %.600s", path, got.status, c.stored(), words(got.body))
			}
		}
		got := importing(v, w.pages+path+"?do=import", "Telefono,Data,Codice,Nome\n3331239991,28/02/2027 10:00,new1,Ada\n3331239992,03/04/2027 10:00,new2,Eva\n", fields...)
		if c.stored() == before {
			t.Errorf("%s: the checked file: %d %.600s", path, got.status, words(got.body))
		}
	}
}

// TestColumnsAskForDates: a list is stored, and then its text uses a column as a date that has dates of both orders. The form of
// the columns asks, although no column changed, and the answer is stored.
func TestColumnsAskForDates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	draft := control.NewCampaign{Name: "x", Purpose: "service", Step: &puntuale.Step{Text: "Il {{nascita}}"}}
	made, err := w.Client().CreateCampaign(t.Context(), draft, nil, control.Once[control.Campaign]{})
	w.must(err)
	id := made.ID.String()
	_, err = w.Client().PutRecipients(t.Context(), id, strings.NewReader("Telefono,Nascita\n3331239991,28/02/1990\n3331239992,02/28/1990\n3331239993,03/04/1992\n"), "text/csv", control.FileImport{})
	w.must(err)
	draft.Step = &puntuale.Step{Text: "Il {{nascita:giorno}}"}
	_, err = w.Client().UpdateCampaign(t.Context(), id, draft)
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	path := w.pages + "/campaigns/" + id + "/columns"
	asks := v.post(path, url.Values{"column.phone": {"1"}, "column.nascita": {"2"}, "do": {"next"}})
	if asks.status != http.StatusUnprocessableEntity || !strings.Contains(asks.body, `value="2=dmy"`) || !strings.Contains(asks.body, `value="2=mdy"`) || strings.Contains(asks.body, `value="1=mdy"`) {
		t.Fatalf("%d %.900s", asks.status, words(asks.body))
	}
	done := v.post(path, url.Values{"column.phone": {"1"}, "column.nascita": {"2=mdy"}, "do": {"next"}})
	if done.status != http.StatusSeeOther || !strings.HasSuffix(done.to(), "/check") {
		t.Fatalf("%d %.900s", done.status, words(done.body))
	}
	list, err := w.Client().RecipientsOf(t.Context(), id)
	w.must(err)
	if len(list.Unread) > 0 || list.Preview[2][1] != "04/03/1992" {
		t.Errorf("stored %v, unread %v", list.Preview, list.Unread)
	}
	if again := v.post(path, url.Values{"column.phone": {"1"}, "column.nascita": {"2"}, "do": {"next"}}); again.status != http.StatusSeeOther {
		t.Errorf("%d %.900s", again.status, words(again.body))
	}
}

// TestImportBoundsItsFields: the fields before the file are bounded together, however many there are.
func TestImportBoundsItsFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	const file = "Codice,Telefono\nv1,3331239991\n"
	for what, c := range map[string]struct {
		field  string
		n      int
		status int
	}{
		"a wide file": {"column.1~x", 200, http.StatusOK}, "large fields": {"x~" + strings.Repeat("x", 60<<10), 20, http.StatusRequestEntityTooLarge}, "empty fields": {"x~", 5000, http.StatusRequestEntityTooLarge},
		"long names": {strings.Repeat("x", 60<<10) + "~", 20, http.StatusRequestEntityTooLarge},
	} {
		fields := append(slices.Repeat([]string{c.field}, c.n), "sequence~"+w.sequence(bookedVisit()))
		if got := importing(v, w.pages+"/bookings/import", file, fields...); got.status != c.status {
			t.Errorf("%s: %d %.300s", what, got.status, words(got.body))
		}
	}
}
