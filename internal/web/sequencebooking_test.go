package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// TestBookingSequenceStory writes a sequence for bookings. The preview shows what becomes of a booking's messages when the
// booking changes.
func TestBookingSequenceStory(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		english := b.look.language == "en"
		said := func(italian, other string) string {
			if english {
				return other
			}
			return italian
		}
		day := said("data_appuntamento", "appointment_date")
		b.signIn(w.clients[puntuale.Staff])
		// The preview of each change.
		b.open(w.pages + "/sequences/new?like=booking")
		b.until(`document.querySelectorAll(".timeline .bubble").length === 2`)
		leaves := func(kind string, whole, gone int) {
			b.t.Helper()
			b.fill("preview.change", kind)
			b.until(`document.querySelectorAll(".timeline-message:not(.timeline-gone)").length === ` + fmt.Sprint(whole) + ` && document.querySelectorAll(".timeline-gone").length === ` + fmt.Sprint(gone))
		}
		b.check("new")
		leaves("moved", 3, 1) // the first message had left; the reminder of the old day is gone; a notice and a new reminder leave
		b.until(`document.querySelector("[name='preview.to']").value`)
		b.reads(said("non parte più: Appuntamento spostato", "no longer leaves: Appointment moved"))
		b.check("moved")
		b.fill("preview.to", "2026-02-02T09:00")
		b.until(`document.querySelector(".timeline").innerText.includes(` + quote(said("lunedì 2 febbraio", "02/02/2026")) + `)`)
		leaves("confirmed", 2, 0)
		leaves("cancelled", 2, 1)
		b.reads(said("non parte più: Appuntamento annullato", "no longer leaves: Appointment cancelled"))
		leaves("arrived", 3, 0) // the thanks
		leaves("no_show", 2, 0)
		leaves("", 2, 0)
		b.click(".editor-save .btn-primary")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		b.reads(said("per appuntamenti, con la data in «data_appuntamento»", "for appointments, with the date in “appointment_date”"))
		b.reads(said("Quando viene spostato", "When it is moved"))
		leaves("cancelled", 2, 1)
		b.check("saved")

		b.open(w.pages + "/sequences/new")
		visible := func(selector string) string {
			return `document.querySelector('` + selector + `')?.checkVisibility()`
		}

		// The choice shows what belongs to bookings, and hides what does not.
		evaluate[bool](b, `document.querySelector("details.details").open = true`)
		b.until(visible(`[name=if_running]`) + ` && !` + visible(`[name=booking]`) + ` && !` + visible(`.only-if`) + ` && document.querySelector(".timing-direction optgroup").disabled`)
		b.click(`[name=for_bookings]`)
		b.until(`!` + visible(`[name=if_running]`) + ` && !` + visible(`[name=stop_on_reply]`) + ` && ` + visible(`[name=booking]`) + ` && ` + visible(`.only-if`) + ` && !document.querySelector(".timing-direction optgroup").disabled`)
		b.until(`document.querySelector("[name=booking]").value === ` + quote(day) + ` && ` + visible(`[name="fields.`+day+`"]`))
		unset := func(words string) {
			b.t.Helper()
			b.until(`document.querySelector(".only-if-unset").innerText === ` + quote(words))
		}
		unset(said("Nessuno scelto: da confermare o confermato.", "None chosen: not confirmed, or confirmed."))
		b.fill("steps[0].timing.offset.direction", "booking.cancelled")
		unset(said("Nessuno scelto: annullato.", "None chosen: cancelled."))
		b.until(visible(`.timing-minute`) + ` && !` + visible(`.timing-anchor`))
		b.fill("steps[0].timing.offset.direction", "after", "steps[0].timing.anchor", "booking.no_show", "steps[0].timing.offset.amount", "2")
		unset(said("Nessuno scelto: mancato.", "None chosen: missed."))
		b.fill("steps[0].timing.offset.direction", "before")
		b.until(`document.querySelector(".timing-anchor").value === ` + quote(day) + ` && !` + visible(`.timing-minute`))
		b.fill("steps[0].timing.offset.direction", "after", "steps[0].timing.anchor", day)
		unset(said("Nessuno scelto: da confermare, confermato o avvenuto.", "None chosen: not confirmed, confirmed, or attended."))
		b.click(`[name="steps[0].only_if"][value=arrived] + span`)
		b.until(`!` + visible(`.only-if-unset`))

		// A reserved name is a fault at its field, and nothing that was typed is lost.
		b.fill("name", "Visita", "steps[0].text", "Ciao {{status}}", "booking", "+", "booking_new", "reference")
		b.click(".editor-save .btn-primary")
		b.until(`document.activeElement?.name === "booking_new" && document.getElementById("f-booking_new-fault")`)
		b.until(`document.getElementById("f-steps[0]-fault")?.innerText.includes("Status")`)
		b.until(`document.querySelector("[name=for_bookings]").checked && document.querySelector('[name="steps[0].only_if"][value=arrived]').checked && document.querySelector("[name=booking_new]").value === "reference"`)
		b.check("refused")
	})
}

// TestBookingSequenceRoundTrip: if the form of a sequence for bookings is sent unchanged, no part of it changes.
func TestBookingSequenceRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	timing := func(anchor string, n int, unit puntuale.Unit, at string) puntuale.Timing {
		return puntuale.Timing{Anchor: anchor, Offset: puntuale.Offset{Amount: n, Unit: unit, Direction: puntuale.After}, At: at}
	}
	id := w.sequence(control.NewSequence{Name: "Visita", Booking: "quando", Steps: []puntuale.Step{
		{Text: "a", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}},
		{Text: "b", Timing: puntuale.Timing{Anchor: puntuale.BookingMovedAnchor}, OnlyIf: []string{"open", "confirmed"}},
		{Text: "c", Timing: timing(puntuale.BookingNoShowAnchor, 2, puntuale.Hours, "")},
		{Text: "d", Timing: timing(puntuale.BookingCancelledAnchor, 0, puntuale.Days, "18:00")},
		{Text: "e", Timing: timing("quando", 1, puntuale.Days, ""), OnlyIf: []string{"arrived"}},
	}})
	before, err := w.Client().Sequence(context.Background(), id)
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	form := formOf(v.get(w.pages + "/sequences/" + id + "/edit").body)
	if got := v.post(w.pages+"/sequences/"+id, form); got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	after, err := w.Client().Sequence(context.Background(), id)
	w.must(err)
	want, _ := json.MarshalIndent(before.Steps, "", " ")
	got, _ := json.MarshalIndent(after.Steps, "", " ")
	if string(want) != string(got) || after.Booking != before.Booking {
		t.Errorf("was %s\nis %s", want, got)
	}
}

// TestSequenceInUseIsNotForBookings: the editor says at the choice why a sequence that is used otherwise cannot become one
// for bookings, and keeps what was typed.
func TestSequenceInUseIsNotForBookings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	sessions, _, err := w.Client().Sessions(context.Background(), request.Page{})
	w.must(err)
	_, err = w.Client().SetDefaultPair(context.Background(), sessions[0].ID.String(), id, "", nil)
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	form := formOf(v.get(w.pages + "/sequences/" + id + "/edit").body)
	form.Set("for_bookings", "on")
	form.Set("booking", "data_appuntamento")
	form.Set("steps[0].text", "Appena scritto")
	form.Set("steps[1].only_if", "confirmed")
	got := v.post(w.pages+"/sequences/"+id, form)
	if got.status != http.StatusConflict || !strings.Contains(got.body, `id="f-for_bookings-fault"`) || !strings.Contains(got.body, "una campagna, a una regola o") {
		t.Errorf("%d %s", got.status, words(got.body))
	}
	again := formOf(got.body)
	if again.Get("for_bookings") != "on" || again.Get("booking") != "data_appuntamento" || again.Get("steps[0].text") != "Appena scritto" || again.Get("steps[1].only_if") != "confirmed" {
		t.Errorf("what was typed is lost: %v", again)
	}
	form.Set("booking", "+") // a new main date without a name
	got = v.post(w.pages+"/sequences/"+id, form)
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="f-booking_new-fault"`) {
		t.Errorf("%d %s", got.status, words(got.body))
	}
}
