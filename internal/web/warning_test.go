package web_test

import (
	"context"
	"html"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
)

// TestWarnings: while a person writes a sequence, the page warns about future problems, in the reader's language. htmx
// requests these warnings while the person types.
func TestWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	real, err := w.Client().CreateSession(context.Background(), control.NewSession{Name: "Vera", Type: string(puntuale.Socket), Sandbox: new(false)}, control.Once[control.Session]{})
	w.must(err)
	says := func(language string, more url.Values) string {
		v := w.visitor(w.clients[puntuale.Staff])
		v.post("/language", url.Values{"language": {language}})
		form := url.Values{"do": {"preview"}, "name": {"Prova"}, "count": {"1"}, "phone": {"+39 333 1234567"}, "steps[0].kind": {"text"}, "steps[0].text": {"ciao"},
			"steps[0].timing.offset.direction": {"at"}, "steps[0].timing.anchor": {"start"}}
		for name, values := range more {
			form[name] = values
		}
		return html.UnescapeString(between(v.htmx(w.pages+"/sequences/draft", form).body, `id="notes"`, "</ul>"))
	}
	past := url.Values{"steps[0].timing.anchor": {"data_visita"}, "steps[0].timing.offset.direction": {"before"}, "steps[0].timing.offset.amount": {"2"},
		"steps[0].timing.offset.unit": {"days"}, "fields.data_visita": {"21/11/2026 10:00"}}
	audio := url.Values{"steps[0].kind": {"media"}, "steps[0].media": {"https://example.com/saluto.ogg"}, "id_sessione": {real.ID.String()}}
	for name, try := range map[string]struct {
		form   url.Values
		it, en string
	}{
		"nothing":                {nil, "", ""},
		"a field nobody passes":  {url.Values{"steps[0].text": {"Ciao {{codice}}"}, "fields.codice": {""}}, "manca un valore per: codice", "no value for: codice"},
		"a moment that is past":  {past, "Il momento è già passato", "The time has already passed"},
		"a step not written yet": {url.Values{"steps[0].text": {""}}, "", ""},
		"a field without a name": {url.Values{"steps[0].text": {"Ciao {{}}"}}, "", ""},
		"a file not named yet":   {url.Values{"steps[0].kind": {"media"}, "steps[0].text": {""}}, "finché non compili «Indirizzo del file»", "until “Address of the file” is filled in"},
		"too long a text":        {url.Values{"steps[0].text": {strings.Repeat("x", puntuale.MaxText+1)}}, "1 carattere di troppo", "1 character too many"},
		"a file nobody takes":    {url.Values{"steps[0].kind": {"media"}, "steps[0].media": {"https://example.com/guida.exe"}}, "exe", "exe"},
		"audio that has a text":  {audio, "WhatsApp non ammette un testo insieme a un audio", "WhatsApp allows no text together with an audio file"},
		"a number that is wrong": {url.Values{"phone": {"12"}}, "Telefono", "Phone"},
	} {
		for language, want := range map[string]string{"it": try.it, "en": try.en} {
			got := says(language, try.form)
			if warned := strings.Contains(got, `class="note note-`); warned != (want != "") || !strings.Contains(got, want) {
				t.Errorf("%s, %s: %s", name, language, got)
			}
		}
	}
}
