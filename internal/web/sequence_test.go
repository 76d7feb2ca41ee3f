package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// appointment returns a typical sequence. Its messages leave immediately, two days before a date, and on the day after
// the date.
func appointment() control.NewSequence {
	before := puntuale.Timing{Anchor: "data_appuntamento", Offset: puntuale.Offset{Amount: 2, Unit: puntuale.Days, Direction: puntuale.Before}, At: "09:00"}
	after := puntuale.Timing{Anchor: "data_appuntamento", Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.After}, At: "18:00",
		Window: &puntuale.Window{Weekdays: []int{1, 2, 3, 4, 5}, From: "09:00", To: "19:00", Holidays: puntuale.HolidaysAvoid}}
	return control.NewSequence{Name: "Promemoria visita", Steps: []puntuale.Step{
		{Text: "Ciao {{nome}}, ti aspettiamo {{data_appuntamento:giorno}} alle {{data_appuntamento:ora}}.", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}},
		{Text: "Ciao {{nome}}, mancano due giorni!", Media: "https://example.com/mappa.pdf", MediaName: "Come arrivare.pdf", Timing: before},
		{Text: "Grazie, {{nome}}.", Timing: after},
	}}
}

func (w *world) sequence(r control.NewSequence) string {
	w.t.Helper()
	made, err := w.Client().CreateSequence(context.Background(), r, control.Once[control.Sequence]{})
	w.must(err)
	return made.ID.String()
}

// TestSequenceStory creates a sequence from an example, changes it while the preview follows, saves it, and starts it.
func TestSequenceStory(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/sequences")
		b.check("empty")
		person, day := "nome", "data_appuntamento" // the fields of the example sequence
		if b.look.language == "en" {
			person, day = "name", "appointment_date"
		}
		b.click(".begin-card")
		b.until(`document.querySelectorAll(".step").length === 3 && document.readyState === "complete"`)
		b.check("editor")
		// The hint below the hours explains in which direction a window changes a step's due time. For a step before a date,
		// the time becomes earlier. When the step's direction changes, the hint also changes.
		hints := `[...document.querySelectorAll(".step")].map(s => [...s.querySelectorAll(".timing-later, .timing-earlier")].filter(e => getComputedStyle(e).display !== "none").map(e => e.className).join()).join(" ")`
		if got := evaluate[string](b, hints); got != "timing-later timing-earlier timing-later" {
			b.t.Errorf("the hints are %s", got)
		}
		b.fill("steps[1].timing.offset.direction", "after")
		b.until(hints + ` === "timing-later timing-later timing-later"`)
		b.fill("steps[1].timing.offset.direction", "before")
		b.until(hints + ` === "timing-later timing-earlier timing-later"`)
		evaluate[bool](b, `(scrollTo(0, 1e6), true)`)
		b.until(`scrollY > 0 && Math.abs(document.querySelector(innerWidth > 960 ? ".side" : ".top").getBoundingClientRect().top) < 1`) // the navigation is still visible

		// The preview beside the editor follows what the person types. The planner makes the preview.
		b.fill("steps[0].text", "Ciao {{"+person+"}}, il tuo codice è {{codice}}.")
		b.until(`document.querySelector("[name='fields.codice']")?.value`) // the new field has an example value, so there is no warning
		b.until(`!document.querySelector("#notes .note")`)
		b.fill("fields.codice", "A-17", "fields."+person, "Lucia")
		b.until(`document.querySelector("#timeline .bubble-text").innerText === "Ciao Lucia, il tuo codice è A-17."`)
		b.until(`!document.querySelector("#notes .note")`)
		b.until(`document.querySelector('[data-insert="codice"]')`) // the new field is offered as a chip

		// Tapping a chip inserts its field at the cursor. The order of steps can be changed with the keyboard and by
		// dragging.
		b.click(`#step-1 [data-insert="codice"]`)
		b.until(`document.querySelector('[name="steps[1].text"]').value.includes("{{codice}}")`)
		b.click(`[value="move:1:0"]`)
		b.until(`document.querySelector('[name="steps[1].text"]').value.includes("A-17") || document.querySelector('[name="steps[1].text"]').value.includes("il tuo codice")`)
		b.until(`Alpine.$data(document.getElementById("sequence-form")).moved`) // the script of a new form becomes active shortly after the form is shown
		evaluate[bool](b, `(() => { Alpine.$data(document.getElementById("sequence-form")).moved("0", 1); return true })()`)
		b.until(`document.querySelector('[name="steps[0].text"]').value.includes("il tuo codice")`)
		b.click(`[value="remove:1"]`)
		b.until(`document.querySelectorAll(".step").length === 2`)
		b.check("removed")
		b.click(`[value="restore"]`)
		b.until(`document.querySelectorAll(".step").length === 3 && !document.querySelector(".step-gone")`)
		b.click(`[value="add"]`)
		b.until(`document.querySelectorAll(".step").length === 4 && document.activeElement?.name === "steps[3].text"`)
		b.click(`[name="steps[3].kind"][value="media"] + svg`)
		b.click(".editor-save .btn-primary")
		b.until(`document.activeElement?.name === "steps[3].media"`) // the field with the fault has the focus
		b.check("refused")
		b.fill("steps[3].media", "https://example.com/guida.exe")
		b.until(`document.querySelector("#notes .note-bad")?.innerText.includes("exe")`)
		b.fill("steps[3].media", "https://example.com/guida.pdf", "steps[3].timing.offset.direction", "before", "steps[3].timing.offset.amount", "30", "steps[3].timing.anchor", day)
		b.until(`document.querySelector("#notes .note-warn")`) // the time 30 days before the date is in the past
		b.check("past")
		b.fill("steps[3].timing.offset.amount", "1")
		b.until(`!document.querySelector("#notes .note")`)
		b.click(".editor-save .btn-primary")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		b.check("saved")

		b.open(evaluate[string](b, `location.pathname`) + "/start")
		b.fill("phone", "333 765 4321", "fields."+person, "Lucia", "fields.codice", "B-2")
		b.click("[value=preview]")
		b.until(`document.activeElement?.name === "fields.` + day + `"`) // the missing field has the focus
		b.fill("fields."+day, "2026-11-30T15:30")
		b.until(`document.querySelectorAll(".timeline .bubble").length === 4 && document.querySelector("[value=start]:enabled")`)
		b.check("start")
		b.click("[value=start]")
		b.until(`document.querySelector("h1").innerText === "Sequenza avviata" || document.querySelector("h1").innerText === "Sequence started"`)
		b.check("started")
		b.open(w.pages + "/sequences")
		b.check("list")

		// The page asks before it deletes the sequence, and explains what happens to the sequence's messages. Then the
		// person undoes the deletion.
		b.click(".list-name")
		b.click("[data-open=delete]")
		b.click("dialog[open] .btn-danger")
		b.until(`document.querySelector("dialog[open] [name=pending]")`)
		b.check("delete")
		b.tap("dialog[open] [value=cancel]")
		b.click("dialog[open] .btn-danger")
		b.until(`document.querySelector(".toast-box form")`)
		b.check("deleted")
		b.click(".toast-box form button")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.querySelectorAll(".seq-plan li").length === 4`)
	})
}

// TestSequencePages compares the pages of sequences with golden files.
func TestSequencePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	v := w.visitor(w.clients[puntuale.Owner])
	port := strings.TrimPrefix(w.base, "http://")
	for name, path := range map[string]string{
		"sequences": "/sequences", "sequence": "/sequences/" + id, "sequence-edit": "/sequences/" + id + "/edit", "sequence-start": "/sequences/" + id + "/start",
		"sequence-import": "/sequences/import",
	} {
		got := v.get(w.pages + path)
		if got.status != http.StatusOK {
			t.Errorf("%s: %d", path, got.status)
		}
		golden(t, name, strings.ReplaceAll(mainOf(got.body), port, "puntuale.example"))
	}
	reader := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/sequences/" + id)
	if reader.status != http.StatusOK || strings.Contains(reader.body, "/edit") || strings.Contains(reader.body, `data-open="delete"`) {
		t.Errorf("a reader: %d, or with buttons that are not for them", reader.status)
	}
}

// TestSequenceExamples: the preview fills fields with what their names say.
func TestSequenceExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := w.Client().CreateSequence(t.Context(), control.NewSequence{Name: "Visita", Steps: []puntuale.Step{
		{Text: "{{nome}}: {{data}} alle {{ora_visita}}, {{link}}, {{lavoratore}}.", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}}, control.Once[control.Sequence]{})
	w.must(err)
	if text := inMain(w.visitor(w.clients[puntuale.Staff]).get(w.pages + "/sequences/" + made.ID.String()).body); !strings.Contains(text, "Maria: 12 marzo alle 15:30, https://example.com/, esempio.") &&
		!strings.Contains(words(text), "Maria: 12 marzo alle 15:30, https://example.com/ , esempio.") {
		t.Errorf("the preview: %s", text)
	}
}

// TestSequenceRoundTrip: if a form is sent unchanged, no part of the sequence changes.
func TestSequenceRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := appointment()
	lat, lon := 45.07031, -7.5
	r.StopOnReply, r.IfRunning = true, "restart"
	r.Steps = append(r.Steps,
		puntuale.Step{Text: "qui", Latitude: &lat, Longitude: &lon, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart, Offset: puntuale.Offset{Unit: puntuale.Days, Direction: puntuale.After}, At: "18:00", Jitter: 90}},
		puntuale.Step{Text: "  con spazi\ne righe  ", OnUncertain: puntuale.UncertainResend, Timing: puntuale.Timing{Anchor: "altra", Offset: puntuale.Offset{Amount: 3, Unit: puntuale.Hours, Direction: puntuale.After}, Jitter: 600, IfPast: puntuale.PastSend, ValidFor: &puntuale.Validity{Amount: 2, Unit: puntuale.Days}}},
	)
	id := w.sequence(r)
	before, err := w.Client().Sequence(context.Background(), id)
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	form := formOf(v.get(w.pages + "/sequences/" + id + "/edit").body)
	if got := v.post(w.pages+"/sequences/"+id, form); got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	after, err := w.Client().Sequence(context.Background(), id)
	w.must(err)
	// All steps must be equal, including a step that leaves on the day of its anchor.
	want, _ := json.MarshalIndent(before.Steps, "", " ")
	got, _ := json.MarshalIndent(after.Steps, "", " ")
	if string(want) != string(got) || after.Name != before.Name || after.IfRunning != before.IfRunning || after.StopOnReply != before.StopOnReply {
		t.Errorf("was %s\nis %s", want, got)
	}
}

// TestSequenceWithoutScripts uses the buttons in a browser without scripts.
func TestSequenceWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	form := formOf(v.get(w.pages + "/sequences/new?like=appointment").body)
	do := func(what string) {
		t.Helper()
		form.Set("do", what)
		got := v.post(w.pages+"/sequences/draft", form)
		if got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", what, got.status, got.body)
		}
		form = formOf(got.body)
	}
	first := form.Get("steps[0].text")
	do("move:0:2")
	if form.Get("steps[2].text") != first || form.Get("count") != "3" {
		t.Errorf("after a move: %v", form)
	}
	do("copy:2")
	do("remove:0")
	if form.Get("steps[2].text") != first || form.Get("count") != "3" {
		t.Errorf("after a copy: %v", form)
	}
	gone := form.Get("steps[1].text")
	do("remove:1")
	if form.Get("count") != "2" || form.Get("gone.text") != gone {
		t.Errorf("after a removal: %v", form)
	}
	do("restore")
	if form.Get("count") != "3" || form.Get("steps[1].text") != gone || form.Has("gone") || form.Has("gone.text") {
		t.Errorf("after it was taken back: %v", form)
	}
	for _, odd := range []string{"", "restore", "move:9:0", "move:0:9", "remove:-1", "remove:x", "move", "copy:99999999999999999999"} {
		do(odd)
	}
	form.Set("name", "")
	form.Set("steps[0].timing.offset.amount", "due")
	got := v.post(w.pages+"/sequences", form)
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `value="due"`) || !strings.Contains(got.body, "numero intero") || !strings.Contains(got.body, "f-name-fault") {
		t.Errorf("refused: %d %s", got.status, got.body)
	}
	form.Set("name", "Mia")
	form.Set("steps[0].timing.offset.amount", "2")
	if got := v.post(w.pages+"/sequences", form); got.status != http.StatusSeeOther {
		t.Errorf("saved: %d %s", got.status, got.body)
	}
}

func TestSequenceIsCopiedExportedDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	v := w.visitor(w.clients[puntuale.Staff])
	file := v.get(w.pages + "/sequences/" + id + "/export")
	if file.status != http.StatusOK || !strings.Contains(file.header.Get("Content-Disposition"), "attachment") {
		t.Fatalf("export: %d %v", file.status, file.header)
	}
	taken := v.post(w.pages+"/sequences/import", url.Values{"content": {file.body}})
	if taken.status != http.StatusSeeOther {
		t.Fatalf("import: %d %s", taken.status, taken.body)
	}
	again := v.get(taken.to() + "/export")
	if again.body != file.body {
		t.Errorf("exported %s, then %s", file.body, again.body)
	}
	for _, bad := range []string{"", "{", "[]", `"x"`, `{"steps":{}}`} {
		if got := v.post(w.pages+"/sequences/import", url.Values{"content": {bad}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-content-fault") {
			t.Errorf("import of %q: %d", bad, got.status)
		}
	}
	if got := v.post(w.pages+"/sequences/import", url.Values{"content": {`{"name":"Rotta","steps":[{"text":"ciao {{","timing":{"anchor":"start","offset":{"amount":0}}}]}`}}); got.status >= 500 || !strings.Contains(got.body, "Rotta") || !strings.Contains(got.body, "f-steps[0].text-fault") {
		t.Errorf("import of a faulty one: %d %s", got.status, got.body)
	}
	if got := v.post(w.pages+"/sequences/import", url.Values{"content": {strings.Replace(file.body, `"timing"`, `"tempo"`, 1)}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-content-fault") {
		t.Errorf("import of one with a slip: %d", got.status)
	}
	if got := v.post(w.pages+"/sequences/import", url.Values{"content": {`{"name":"Senza tempi","steps":[{"text":"ciao"}]}`}}); !strings.Contains(got.body, "f-steps[0].timing-fault") || !strings.Contains(got.body, "Senza tempi") {
		t.Errorf("import of one that does not say when it leaves: %d %s", got.status, got.body)
	}
	copied := v.post(w.pages+"/sequences/"+id+"/copy", nil)
	if copied.status != http.StatusSeeOther || !strings.Contains(v.get(copied.to()).body, "Promemoria visita (copia)") {
		t.Errorf("copy: %d %s", copied.status, copied.to())
	}

	at := w.pages + "/sequences/" + id
	started := v.post(at+"/start", v.startForm(at, url.Values{"phone": {"3337654321"}, "fields.nome": {"Lucia"}, "fields.data_appuntamento": {"30/11/2026 10:00"}}))
	if started.status != http.StatusSeeOther || !strings.Contains(v.get(started.to()).body, "Sequenza avviata") {
		t.Fatalf("start: %d %s", started.status, started.body)
	}
	sessions, _, err := w.Client().Sessions(context.Background(), request.Page{})
	w.must(err)
	session := sessions[0].ID.String()
	_, err = w.Client().SetDefaultPair(context.Background(), session, id, "", nil)
	w.must(err)
	if page := v.get(w.pages + "/sequences/" + id).body; !strings.Contains(page, "predefinita di: "+sessions[0].Name) {
		t.Error("the question does not say that it is a default sequence")
	}
	asked := v.post(w.pages+"/sequences/"+id+"/delete", url.Values{})
	if asked.status != http.StatusConflict || !strings.Contains(asked.body, "3 suoi messaggi") || !strings.Contains(asked.body, `value="cancel"`) {
		t.Errorf("delete: %d %s", asked.status, asked.body)
	}
	if got := v.post(w.pages+"/sequences/"+id+"/delete", url.Values{"pending": {"cancel"}}); got.status != http.StatusSeeOther {
		t.Errorf("delete and cancel: %d %s", got.status, got.body)
	}
	undo := html.UnescapeString(between(v.get(w.pages+"/sequences").body, `<form method="post" action="`+w.pages+`/sequences/`+id+`/restore`, `"`))
	if got := v.get(w.pages + "/sequences/" + id); got.status != http.StatusNotFound {
		t.Errorf("afterwards: %d", got.status)
	}
	if got := v.post(w.pages+"/sequences/"+id+"/restore"+undo, nil); got.status != http.StatusSeeOther || v.get(got.to()).status != http.StatusOK {
		t.Errorf("taken back: %d %s", got.status, got.to())
	}
	back, err := w.Client().Session(context.Background(), session)
	w.must(err)
	if back.Start.String() != id || back.Stop != 0 {
		t.Errorf("the default pair is %d and %d", back.Start, back.Stop)
	}
	if got := v.post(w.pages+"/sequences/"+id+"/restore", nil); got.status != http.StatusNotFound {
		t.Errorf("taken back twice: %d", got.status)
	}
}

// TestRestoreSaysThatItFailed: if a restored sequence cannot become a session's default again, the page must not say
// that everything was restored. If the session was deleted since, this is not a failure.
func TestRestoreSaysThatItFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	sessions, _, err := w.Client().Sessions(context.Background(), request.Page{})
	w.must(err)
	for _, broken := range []bool{false, true} {
		r := appointment()
		r.Session = sessions[0].ID.String()
		id := w.sequence(r)
		w.must(w.Client().DeleteSequence(context.Background(), id, ""))
		named := "999"
		if broken {
			session, _ := w.newSession("Illeggibile", puntuale.Socket, true)
			named = session.ID.String()
			_, err := w.sql.ExecContext(context.Background(), `update session set link_condition = 1000 where id = `+named)
			w.must(err)
		}
		if got := v.post(w.pages+"/sequences/"+id+"/restore?start="+named, nil); (got.status != http.StatusSeeOther) != broken {
			t.Errorf("broken %t: %d %s", broken, got.status, got.to())
		}
	}
}

// TestHostileSequences: the pages of sequences and templates show all values as text.
func TestHostileSequences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	for i, text := range hostile() {
		s := control.NewSequence{Name: text, Steps: []puntuale.Step{{Text: text + " {{nome|" + strings.NewReplacer("{", "", "}", "").Replace(text) + "}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}}
		form := url.Values{"name": {s.Name}, "count": {"1"}, "steps[0].kind": {"text"}, "steps[0].text": {s.Steps[0].Text}, "phone": {text}, "fields.nome": {text},
			"steps[0].timing.offset.direction": {"at"}, "steps[0].timing.anchor": {text}, "steps[0].media": {text}}
		pages := []answer{v.post(w.pages+"/sequences/draft", form), v.htmx(w.pages+"/sequences/draft", form), v.post(w.pages+"/sequences", form),
			v.post(w.pages+"/templates/draft", url.Values{"name": {text}, "text": {text}, "official": {text + "|" + text}})}
		if i%20 == 0 {
			id := w.sequence(s)
			at := w.pages + "/sequences/" + id
			pages = append(pages, v.get(at), v.get(at+"/edit"), v.get(at+"/start?phone="+url.QueryEscape(text)), v.get(w.pages+"/sequences"),
				v.get(at+"?"+url.Values{"phone": {text}, "fields.nome": {text}}.Encode()))
		}
		for _, p := range pages {
			if p.status >= 500 {
				t.Fatalf("%q: %d", text, p.status)
			}
			if found := live(p.body); found != "" {
				t.Errorf("%q became %s", text, found)
			}
		}
	}
}

// hostile returns 200 texts that would run code if a page did not escape them.
func hostile() (all []string) {
	marks := []string{"<script>pwned()</script>", "<img src=x onerror=pwned()>", "\"><svg onload=pwned()>", "' onfocus=pwned() autofocus='", "javascript:pwned()",
		"</textarea><script>pwned()</script>", "</title><b>pwned", "<!--pwned", "<iframe srcdoc='<script>pwned()</script>'>", "<a href=javascript:pwned()>x</a>",
		"<div hx-get=/me hx-trigger=load>pwned</div>", "<p x-data=\"pwned()\" x-init=\"pwned()\">", "<form action=//evil.example><button>pwned", "<style>*{display:none}</style>pwned", "<base href=//evil.example>pwned",
		"<meta http-equiv=refresh content=0;url=//evil.example>pwned", "</select><script>pwned()</script>", "</option></select><img src=x onerror=pwned()>", "<template><script>pwned()</script></template>", "&lt;script&gt;pwned()&lt;/script&gt;"}
	wraps := []string{"%s", "ciao %s ciao", "\u202e%s", "%s\n%s", "%s", "{%s}", "\"%s\"", "'%s'", "`%s`", "<%s>"}
	for _, m := range marks {
		for i, wrap := range wraps {
			all = append(all, strings.ReplaceAll(wrap, "%s", fmt.Sprintf("%s%d", m, i)))
		}
	}
	return all
}
