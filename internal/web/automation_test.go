package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/automation"
)

// TestAutomationStory: somebody creates a rule from an example with one click. The person makes a mistake in it,
// corrects the mistake and tries the rule. Then the person turns the rule off and on in the list.
func TestAutomationStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/automations")
		b.check("empty")
		b.click(`main a[href$="like=info"]`)
		b.until(`document.querySelector("#automation-form [name='trigger.words']").value === "info"`)
		b.check("example")
		b.fill("trigger.words", "")
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`document.querySelector("[id='f-trigger.words-fault']") && document.activeElement.name === "trigger.words"`)
		b.check("fault")
		b.fill("trigger.words", "info, listino")
		b.until(`document.querySelector("#automation-try .rule-says").textContent.includes("listino")`)
		b.fill("try.phone", "333 1234567", "try.text", "Listino!")
		b.until(`document.querySelector("#automation-try .note-ok") && document.querySelector("#automation-try .try-moments time")`)
		b.check("would")
		b.fill("try.text", "altro")
		b.until(`document.querySelector("#automation-try .note-warn") && document.querySelector("#automation-try .check-not")`)
		b.check("would-not")
		b.click(`button[value="add:conditions.fields"]`)
		b.until(`document.querySelector("[name='conditions.fields[0].name']") === document.activeElement`)
		b.fill("conditions.fields[0].name", "citta", "conditions.fields[0].value", "Torino")
		b.click(`button[value="add:actions"]`)
		b.until(`document.querySelectorAll(".rule-actions > li").length === 2`)
		evaluate[string](b, `(() => { const s = document.querySelector("[name='actions[1].kind']"); s.value = "tag"; s.dispatchEvent(new Event("change", {bubbles: true})); return s.value })()`)
		b.fill("actions[1].add", "interessato")
		b.check("filled")
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`/automations\/\d+$/.test(location.pathname) && document.querySelector(".rule-says")`)
		b.reads("listino")
		b.reads("interessato")
		b.check("made")
		b.click(`.head .switch`)
		b.until(`document.querySelector(".head .switch[aria-checked=false]") && document.readyState === "complete"`)
		b.open(w.pages + "/automations")
		b.until(`document.querySelector("tbody .switch[aria-checked=false]")`)
		b.check("list")
		b.click(`tbody .switch`)
		b.until(`document.querySelector("tbody .switch[aria-checked=true]") && document.readyState === "complete"`)
		all, err := w.rules.OfClient(w.Client(), "").List(t.Context())
		w.must(err)
		if len(all) != 1 || !all[0].Active || len(all[0].Actions) != 2 || all[0].Conditions.Fields[0].Value != "Torino" || len(all[0].Trigger.Words) != 2 {
			t.Errorf("stored: %+v", all)
		}
	})
}

// TestAutomationTrial: the panel shows the due times of the first messages, the problems that the messages would have,
// and what prevents the rule from acting. Markup in a name or a text is shown as text.
func TestAutomationTrial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	step := puntuale.Step{Text: "Ciao {{nome}} <b>", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}
	steps := []puntuale.Step{step}
	for n := range 7 {
		step.Text, step.Timing.Offset = "Dopo", puntuale.Offset{Amount: n + 1, Unit: puntuale.Days, Direction: puntuale.After}
		steps = append(steps, step)
	}
	id := w.sequence(control.NewSequence{Name: "Otto <i>", Steps: steps})
	v := w.visitor(w.clients[puntuale.Staff])
	try := func(phone string) string {
		t.Helper()
		got := v.htmx(w.pages+"/automations/draft", url.Values{
			"name": {"R"}, "trigger.kind": {"reply"}, "actions.count": {"1"}, "actions[0].kind": {"start"}, "actions[0].sequence": {id}, "try.phone": {phone},
		})
		if got.status != http.StatusOK || strings.Contains(got.body, "<b>") || strings.Contains(got.body, "<i>") {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return got.body
	}
	if got := try("333 1234567"); !strings.Contains(got, "La regola non farebbe niente") || !strings.Contains(got, "Che cosa lo impedisce") || !strings.Contains(got, "Nome: è obbligatorio") && !strings.Contains(got, "nome: è obbligatorio") {
		t.Errorf("a field is missing: %s", got)
	}
	_, err := w.Client().AddContact(t.Context(), control.NewContact{Phone: "3331234567", Name: "Anna"}, control.Once[puntuale.Contact]{})
	w.must(err)
	_, err = w.Client().AddBlacklisted(t.Context(), "3331234567", "", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	got := try("333 1234567")
	for _, part := range []string{"La regola agirebbe", "Ciao Anna &lt;b&gt;", "20 nov", "21 nov", "e altri 3 messaggi", "blacklist"} {
		if !strings.Contains(got, part) {
			t.Errorf("the trial lacks %q: %s", part, got)
		}
	}
}

// TestAutomationExamples: each example opens an editor that reads as a sentence. It shows no fault before somebody
// saves.
func TestAutomationExamples(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Owner])
		for _, like := range []string{"birthday", "renewal", "noshow", "form", "absent", "program"} {
			b.open(w.pages + "/automations/new?like=" + like)
			b.until(`document.querySelector("#automation-try .rule-says").textContent.length > 30`)
			b.check(like)
		}
	})
}

// TestAutomationHook: the editor of a hook offers the paths of the last payload, and tries this payload. A new address
// replaces the previous address.
func TestAutomationHook(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		rules := w.rules.OfClient(w.Client(), "")
		made, err := rules.Create(t.Context(), automation.Draft{Automation: puntuale.Automation{Name: "Modulo", Active: true,
			Trigger: puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "telefono"}},
			Actions: []puntuale.Action{{Kind: puntuale.ActionSend, Text: "Ciao {{nome|}}"}}}}, control.Once[automation.Rule]{})
		w.must(err)
		hook, err := w.rules.HookOf(t.Context(), strings.TrimPrefix(made.Path, automation.HookPath))
		w.must(err)
		_, err = w.rules.Call(t.Context(), hook, automation.HookRequest{Body: []byte(`{"cliente":{"nome":"Lucia","telefono":"333 7654321"},"righe":[{"key":"a","valore":1},{"key":"b","valore":2}]}`)})
		w.must(err)
		b.signIn(w.clients[puntuale.Owner])
		at := w.pages + "/automations/" + made.ID.String()
		b.open(at + "/edit")
		b.reads("righe[key=b].valore")
		b.until(`document.querySelector("#payload-members option[value='cliente.telefono']")`)
		b.fill("map[0].path", "cliente.telefono")
		b.click(`button[value="add:map"]`)
		b.until(`document.querySelector("[name='map[1].field']")`)
		b.fill("map[1].field", "nome", "map[1].path", "cliente..nome")
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`document.querySelector("[id='f-map[1].path-fault']")`)
		b.check("mapping-fault")
		b.fill("map[1].path", "cliente.nome")
		b.until(`document.querySelector("#automation-try .members")?.textContent.includes("Lucia") && document.querySelector("#automation-try .note-ok")`)
		b.check("mapping")
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`/automations\/\d+$/.test(location.pathname) && document.querySelector(".secret")`)
		b.reads(made.Path)
		b.check("address")
		b.click(`[data-open=automation-rotate]`)
		b.until(`document.querySelector("#automation-rotate[open]")`)
		b.check("rotate")
		b.click(`#automation-rotate .btn-danger`)
		b.until(`document.querySelector(".secret code") && !document.body.innerText.includes(` + quote(made.Path) + `) && document.readyState === "complete"`)
		if _, err := w.rules.HookOf(t.Context(), strings.TrimPrefix(made.Path, automation.HookPath)); puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("the former address: %v", err)
		}
	})
}

// TestAutomationPages: users with the role reader see rules without the addresses of hooks, and cannot change rules.
// Saving does not overwrite a change that somebody else made since the form was opened. Another client finds nothing.
func TestAutomationPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := w.everything(w.client)
	at := w.pages + "/automations/" + has["automations"]
	owner, reader, stranger := w.visitor(w.clients[puntuale.Owner]), w.visitor(w.clients[puntuale.Reader]), w.visitor(w.foreignOwner)
	if page := owner.get(at).body; !strings.Contains(page, "/hooks/hk_") {
		t.Error("an owner does not see the address")
	}
	if page := reader.get(at); page.status != http.StatusOK || strings.Contains(page.body, "hk_") || strings.Contains(page.body, `action="`+at) {
		t.Errorf("a reader: %d", page.status)
	}
	for _, path := range []string{"/switch", "/rotate", "/delete", ""} {
		if got := reader.post(at+path, url.Values{"name": {"x"}}); got.status != http.StatusForbidden {
			t.Errorf("a reader posts %s: %d", path, got.status)
		}
		if got := stranger.post(at+path, url.Values{"name": {"x"}}); got.status != http.StatusNotFound {
			t.Errorf("a stranger posts %s: %d", path, got.status)
		}
	}
	form := url.Values{"name": {"Modulo mio"}, "active": {"on"}, "trigger.kind": {"hook"}, "map.count": {"1"}, "map[0].field": {"phone"}, "map[0].path": {"tel"}, "version": {"former"},
		"actions.count": {"1"}, "actions[0].kind": {"blacklist"}, "conditions.fields.count": {"0"}}
	if got := owner.post(at, form); got.status != http.StatusConflict || !strings.Contains(got.body, "Modulo mio") || !strings.Contains(got.body, "Modulo del sito") {
		t.Errorf("another version: %d", got.status)
	}
	rule, err := w.rules.OfClient(w.Client(), "").Rule(context.Background(), has["automations"])
	w.must(err)
	if rule.Name != "Modulo del sito" {
		t.Errorf("it was overwritten: %s", rule.Name)
	}
	if got := owner.post(at+"/delete", nil); got.status != http.StatusSeeOther {
		t.Errorf("deleted: %d", got.status)
	}
	if got := owner.get(at); got.status != http.StatusNotFound {
		t.Errorf("after that: %d", got.status)
	}
}

// TestAutomationBookings: somebody makes a rule that waits for bookings and changes them. A refusal stands at the choice
// that is wrong. The editor shows the stored rule again.
func TestAutomationBookings(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		id := w.sequence(control.NewSequence{Name: "Visita", Booking: "appuntamento", Steps: []puntuale.Step{
			{Text: "Ciao {{nome}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}})
		choose := func(name, value string) {
			evaluate[string](b, `(() => { const s = document.querySelector("[name='`+name+`']"); s.value = "`+value+`"; s.dispatchEvent(new Event("change", {bubbles: true})); return s.value })()`)
		}
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/automations/new?like=absent")
		b.until(`document.querySelector("#automation-try .rule-says").textContent.length > 30 && document.querySelector("[name='trigger.becomes']").offsetParent`)
		b.check("booking-example")
		choose("trigger.becomes", "moved")
		choose("trigger.booking", id)
		evaluate[bool](b, `(() => { const c = document.querySelector("[name='conditions.booking_status'][value=confirmed]"); c.click(); return c.checked })()`)
		choose("actions[0].kind", "book")
		b.fill("name", "Spostati")
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`document.querySelector("[id='f-actions[0].booking-fault']")`)
		b.check("booking-fault")
		choose("actions[0].booking", id)
		choose("actions[0].status", "open")
		b.fill("actions[0].reference", "{{reference}}-bis")
		b.until(`document.querySelector("#automation-try .rule-says").textContent.includes("bis")`)
		b.fill("try.reference", "nessuno")
		b.until(`document.querySelector("#automation-try .note-bad")`)
		b.check("booking-filled")
		b.click(`#automation-form .editor-save .btn-primary`)
		b.until(`/automations\/\d+$/.test(location.pathname) && document.querySelector(".rule-says")`)
		b.reads("Visita")
		b.check("booking-made")
		all, err := w.rules.OfClient(w.Client(), "").List(t.Context())
		w.must(err)
		if len(all) != 1 || all[0].Trigger.Is != puntuale.BookingIsMoved || string(all[0].Trigger.Sequence) != id || all[0].Conditions.BookingStatus[0] != "confirmed" ||
			all[0].Actions[0].Reference != "{{reference}}-bis" || all[0].Actions[0].Status != "open" || string(all[0].Actions[0].Sequence) != id {
			t.Fatalf("stored: %+v", all)
		}
		b.open(w.pages + "/automations/" + all[0].ID.String() + "/edit")
		b.until(`document.querySelector("[name='actions[0].booking']").value === "` + id + `" && document.querySelector("[name='conditions.booking_status'][value=confirmed]").checked`)
		choose("actions[0].kind", "cancel_booking")
		b.until(`!document.querySelector("#automation-try .rule-says").textContent.includes("open") && document.querySelector("[name='actions[0].silent']").offsetParent`)
		b.check("booking-cancel")
	})
}
