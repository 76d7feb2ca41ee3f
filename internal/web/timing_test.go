package web_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
)

// TestTimingStory: a step with "before" counts from a date, never from the start. While a person types, other elements
// do not move. On a phone the bars cover nothing.
func TestTimingStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		phone := b.look.width < 600
		day := "data_appuntamento"
		if b.look.language == "en" {
			day = "appointment_date"
		}
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/sequences/new")
		b.fill("steps[0].timing.offset.direction", "before", "steps[0].timing.offset.amount", "2", "steps[0].timing.offset.unit", "hours")
		b.until(`document.querySelector(".timing-anchor").value === "` + day + `" && document.querySelector(".timing-anchor [value=start]").disabled`)
		b.until(`document.querySelector("[name='fields.` + day + `']")?.value && !document.querySelector("#notes .note")`)
		above := evaluate[float64](b, `document.querySelector(".fields").offsetTop`)
		b.fill("steps[0].text", "Ciao")
		b.until(`document.querySelector(".counter").innerText.startsWith("4 /") && document.querySelector("#timeline .bubble-text")?.innerText === "Ciao"`)
		if now := evaluate[float64](b, `document.querySelector(".fields").offsetTop`); now != above {
			t.Errorf("the counter moves what is below it from %v to %v", above, now)
		}
		b.check("before")
		b.fill("steps[0].timing.offset.direction", "after")
		if evaluate[bool](b, `document.querySelector(".timing-anchor [value=start]").disabled`) {
			t.Error("nothing can leave after the start")
		}
		if cut := evaluate[float64](b, `document.querySelector(".timing-row").clientWidth - document.querySelector(".timing-anchor").offsetWidth`); phone && cut > 1 {
			t.Errorf("the anchor is %v narrower than its row", cut)
		}

		// If a text contains a date field, the editor chooses this field instead of the anchor that it proposed before.
		b.click(`[value="add"]`)
		b.until(`document.activeElement?.name === "steps[1].text"`)
		b.check("added")
		b.until(`document.querySelector("#step-1 .step-head").getBoundingClientRect().top >= document.querySelector(".top").getBoundingClientRect().bottom`)
		b.until(`document.activeElement.getBoundingClientRect().bottom <= innerHeight`)
		if shown := evaluate[bool](b, `document.querySelector("nav.phone").checkVisibility()`); shown {
			t.Error("the bar of pages is there while one types")
		}
		b.fill("steps[0].timing.offset.direction", "now", "steps[1].text", "Il {{visita:giorno}}, {{nome}}!")
		b.until(`document.querySelector('#step-1 .timing-anchor [value=visita]')`)
		b.fill("steps[1].timing.anchor", "start", "steps[1].timing.offset.direction", "at")
		b.until(`document.querySelector("#step-1 .timing-anchor").value === "visita"`)
		b.fill("steps[1].text", "Il {{visita:giorno}}.")
		if phone {
			evaluate[bool](b, `(document.activeElement.blur(), true)`)
			b.until(`document.querySelector("nav.phone").checkVisibility()`)
		}
		b.fill("name", "Visita") // the form is sent while this field has the focus
		b.click(".editor-save .btn-primary")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.readyState === "complete" && document.querySelector(".seq-plan")`)
		b.reads(map[string]string{"it": "Al momento di «Visita»", "en": "At the moment of “Visita”"}[b.look.language])
	})
}

// TestPreviewOfNothing: an empty form shows no faults.
func TestPreviewOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	const write, mend = "Scrivi il messaggio: qui vedrai come arriva.", "Correggi quanto segnalato"
	if page := html.UnescapeString(v.get(w.pages + "/sequences/new").body); !strings.Contains(page, write) || strings.Contains(page, mend) {
		t.Errorf("untouched: %s", mainOf(page))
	}
	form := url.Values{"do": {"preview"}, "count": {"1"}, "steps[0].kind": {"media"}, "steps[0].media": {"https://example.com/guida.exe"}, "steps[0].timing.offset.direction": {"now"}}
	if page := html.UnescapeString(v.htmx(w.pages+"/sequences/draft", form).body); !strings.Contains(page, mend) || strings.Contains(page, write) {
		t.Errorf("a file nobody takes: %s", page)
	}
}

// TestBeforeTheStart: older versions allowed a step before the start. The pages still describe such a stored step.
// Saving the sequence again is refused, with the fault at the direction.
func TestBeforeTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	stored, err := w.Client().Sequence(context.Background(), id)
	w.must(err)
	stored.Steps[1].Timing = puntuale.Timing{Anchor: puntuale.AnchorStart, Offset: puntuale.Offset{Amount: 2, Unit: puntuale.Hours, Direction: puntuale.Before}, IfPast: puntuale.PastSend}
	w.must(w.store.Tenant(w.client).UpdateSequence(context.Background(), stored.Sequence))
	v := w.visitor(w.clients[puntuale.Staff])
	if page := v.get(w.pages + "/sequences/" + id).body; !strings.Contains(page, "2 ore prima dell’avvio") || !strings.Contains(page, "1 giorno dopo «Data appuntamento», alle 18:00") {
		t.Error(mainOf(page))
	}
	page := v.get(w.pages + "/sequences/" + id + "/edit").body
	if !strings.Contains(page, `<option value="start" selected>«avvio»</option>`) || formOf(page).Get("steps[1].timing.anchor") != "start" {
		t.Error(mainOf(page))
	}
	refused := v.htmx(w.pages+"/sequences/"+id, formOf(page))
	if refused.status != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(refused.body), `id="f-steps[1].timing.offset.direction-fault"`) ||
		!strings.Contains(refused.body, "prima dell’avvio non può partire niente") {
		t.Errorf("%d %s", refused.status, mainOf(refused.body))
	}
}

// TestBeforeWithZero: a step may be "before" a date with an amount of 0. If the editor saves such a step, the direction
// must stay "before".
func TestBeforeWithZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := appointment()
	r.Steps[1].Timing.Offset.Amount = 0
	r.Steps[2].Timing = puntuale.Timing{Anchor: "data_appuntamento", Offset: puntuale.Offset{Direction: puntuale.Before}}
	id := w.sequence(r)
	v := w.visitor(w.clients[puntuale.Staff])
	page := v.get(w.pages + "/sequences/" + id).body
	for _, words := range []string{"Il giorno di «Data appuntamento», alle 09:00", "Subito prima di «Data appuntamento»"} {
		if !strings.Contains(page, words) {
			t.Errorf("no %q in %s", words, mainOf(page))
		}
	}
	saved := v.post(w.pages+"/sequences/"+id, formOf(v.get(w.pages+"/sequences/"+id+"/edit").body))
	after, err := w.Client().Sequence(context.Background(), id)
	w.must(err)
	for i := 1; i <= 2; i++ {
		if o := after.Steps[i].Timing.Offset; o.Amount != 0 || o.Direction != puntuale.Before {
			t.Errorf("step %d is saved with %+v (%d)", i, o, saved.status)
		}
	}
}
