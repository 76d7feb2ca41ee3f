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
	"time"

	"github.com/chromedp/cdproto/emulation"

	"puntuale"
	"puntuale/internal/control"
)

// bookedVisit is a sequence for bookings: a welcome, a reminder the day before, and words about each change.
func bookedVisit() control.NewSequence {
	upon := func(anchor string) puntuale.Timing { return puntuale.Timing{Anchor: anchor} }
	return control.NewSequence{Name: "Visita", Booking: "appuntamento", Steps: []puntuale.Step{
		{Text: "Ciao {{nome}}, ti aspettiamo {{appuntamento:giorno}} alle {{appuntamento:ora}}.", Timing: upon(puntuale.AnchorStart)},
		{Text: "{{nome}}, a domani alle {{appuntamento:ora}}.", Timing: puntuale.Timing{Anchor: "appuntamento", Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.Before}, At: "18:00"}},
		{Text: "Ciao {{nome}}, il tuo appuntamento è ora {{appuntamento:giorno}} alle {{appuntamento:ora}}.", Timing: upon(puntuale.BookingMovedAnchor)},
		{Text: "Ciao {{nome}}, il tuo appuntamento è annullato.", Timing: upon(puntuale.BookingCancelledAnchor)},
		{Text: "Ciao {{nome}}, oggi ti aspettavamo: vuoi un’altra data?", Timing: upon(puntuale.BookingNoShowAnchor)},
		{Text: "{{nome}}, grazie della conferma.", Timing: upon(puntuale.BookingConfirmedAnchor)},
	}}
}

func bookingCall(sequence, reference, phone, name, at string) control.BookingCall {
	text := func(s string) json.RawMessage { raw, _ := json.Marshal(s); return raw }
	return control.BookingCall{Reference: reference, Sequence: sequence, Phone: phone, Door: puntuale.DoorAPI,
		Fields: map[string]json.RawMessage{"nome": text(name), "appuntamento": text(at)}}
}

// book makes a booking, and sets its status unless it is "".
func (w *world) book(sequence, reference, phone, name, at, status string) puntuale.BookingID {
	w.t.Helper()
	call := bookingCall(sequence, reference, phone, name, at)
	made, err := w.Client().PutBooking(context.Background(), call)
	w.must(err)
	if status != "" {
		_, err = w.Client().PutBooking(context.Background(), control.BookingCall{Reference: reference, Status: status, Silent: true, Door: puntuale.DoorAPI})
		w.must(err)
	}
	return made.ID
}

func (w *world) booking(reference string) control.BookingView {
	w.t.Helper()
	found, err := w.Client().Booking(context.Background(), reference)
	w.must(err)
	return found
}

// planned returns the texts of a booking's pending messages.
func (w *world) plannedOf(reference string) string {
	w.t.Helper()
	var texts []string
	for _, s := range w.booking(reference).Steps {
		if s.Pending() {
			found, err := w.Client().Details(context.Background(), []string{s.Message.String()})
			w.must(err)
			texts = append(texts, found[0].Content.Text)
		}
	}
	return strings.Join(texts, "|")
}

// practice makes the bookings of today, and eighteen of tomorrow: eleven are confirmed, one is cancelled, and nobody has
// answered six.
func (w *world) practice() (sequence string) {
	w.t.Helper()
	sequence = w.sequence(bookedVisit())
	people := []string{"Ada Rossi", "Bruno Conti", "Carla Esposito", "Dario Ferri", "Elena Galli", "Fabio Riva", "Giulia Marchetti della Torre", "Hassan Amari", "Irene Costa",
		"Luca Moretti", "Marta Neri", "Nicola Orsini", "Olga Petrova", "Paolo Quaglia", "Rita Sala", "Sara Testa", "Ugo Valli", "Zoe Bianchi"}
	for i, name := range people {
		status := "confirmed"
		switch {
		case i == 4:
			status = "cancelled"
		case i%3 == 0:
			status = ""
		}
		w.book(sequence, fmt.Sprintf("domani-%d", i), fmt.Sprintf("+3933312345%02d", i), name, fmt.Sprintf("21/11/2026 %02d:%02d", 8+i/2, i%2*30), status)
	}
	for i, name := range []string{"Anna Villa", "Piero Zanetti", "Teresa Longo"} {
		w.book(sequence, fmt.Sprintf("oggi-%d", i), fmt.Sprintf("+3933312346%02d", i), name, fmt.Sprintf("20/11/2026 %02d:30", 9+i), "confirmed")
	}
	return sequence
}

// TestReceptionist: a receptionist reads tomorrow, moves an appointment and takes this back, notes who did not come,
// and cancels with and without telling.
func TestReceptionist(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		said := func(italian, english string) string {
			if b.look.language == "en" {
				return english
			}
			return italian
		}
		w.practice()
		row := func(reference string) string { return fmt.Sprintf("#b%d", w.booking(reference).ID) }
		rows := func(n int) {
			b.t.Helper()
			b.until(fmt.Sprintf(`document.querySelectorAll(".booking").length === %d && document.readyState === "complete"`, n))
		}
		b.signIn(w.clients[puntuale.Staff])
		counts := said("Domani: 18 appuntamenti, 11 confermati, uno annullato, 6 senza risposta", "Tomorrow: 18 appointments, 11 confirmed, one cancelled, 6 without an answer")
		b.reads(counts)
		b.check("today")
		b.press(counts)
		rows(18)
		b.reads(counts)
		b.check("day")
		b.leaves(func() { b.press(said("Da confermare", "Not confirmed")) })
		rows(6)
		b.check("unconfirmed")

		// The difference is shown before the move is saved, and the move can be taken back.
		b.leaves(func() { b.click(row("domani-3") + ` a[href*="/move"]`) })
		b.check("move")
		b.fill("date", "2026-11-27", "time", "16:45")
		b.until(`document.querySelectorAll(".difference-line").length === 3 && document.querySelector("[name=do][value=save]")`)
		b.reads(said("gio 26 nov, 18:00", "Thu 26 Nov, 18:00"))
		b.check("difference")
		if got := w.booking("domani-3").Revision; got != 1 {
			t.Errorf("a look has changed the booking: %d", got)
		}
		b.leaves(func() { b.click("[name=do][value=save]") })
		rows(5)
		b.until(`document.querySelector("[data-toast] form")`)
		b.check("moved")
		if got := w.booking("domani-3").Date; !got.Equal(time.Date(2026, 11, 27, 15, 45, 0, 0, time.UTC)) {
			t.Errorf("moved to %v", got)
		}
		b.leaves(func() { b.click("[data-toast] form button") })
		rows(6)
		if got := w.plannedOf("domani-3"); got != "Ciao Dario Ferri, ti aspettiamo sabato 21 novembre alle 09:30.|Dario Ferri, a domani alle 09:30." {
			t.Errorf("after the undo, the messages are %q", got)
		}

		// Who did not come gets the message for it.
		b.open(w.pages + "/bookings")
		rows(3)
		b.check("now")
		b.leaves(func() { b.click(row("oggi-0") + ` form[action$="/no-show"] button`) })
		b.until(`document.querySelector("` + row("oggi-0") + `.booking-no_show")`)
		b.reads("oggi ti aspettavamo")
		b.check("missed")

		// Cancelled with and without telling.
		for reference, tell := range map[string]string{"oggi-1": "yes", "oggi-2": "no"} {
			b.click(row(reference) + " [popovertarget]")
			b.until(`document.querySelector("` + row(reference) + ` .booking-choice").matches(":popover-open")`)
			b.check("choice-" + tell)
			b.leaves(func() { b.click(row(reference) + ` .booking-choice [name=tell][value=` + tell + `]`) })
			b.until(`document.querySelector("` + row(reference) + `.booking-cancelled")`)
		}
		if got := w.plannedOf("oggi-1"); got != "Ciao Piero Zanetti, il tuo appuntamento è annullato." {
			t.Errorf("told: %q", got)
		}
		if got := w.plannedOf("oggi-2"); got != "" {
			t.Errorf("not told: %q", got)
		}
		b.check("cancelled")
		b.leaves(func() { b.click(row("oggi-1") + ` form[action$="/reopen"] button`) })
		b.until(`document.querySelector("` + row("oggi-1") + `.booking-open")`)

		// The list follows what others do.
		_, err := w.Client().PutBooking(context.Background(), control.BookingCall{Reference: "oggi-1", Status: "arrived", Door: puntuale.DoorAPI})
		w.must(err)
		b.ticking(`document.querySelector("` + row("oggi-1") + `.booking-arrived")`)

		b.leaves(func() { b.click(row("oggi-1") + " .list-name") })
		b.check("one")
		b.open(w.pages + "/bookings?view=week")
		rows(21)
		b.check("week")
		command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		if evaluate[bool](b, `[...document.querySelectorAll(".booking-verbs, .side, .phone, .searchbar")].some(e => e.checkVisibility())`) {
			t.Error("buttons are printed")
		}
		b.picture("printed")
		b.turn(b.look)
		b.open(w.pages + "/bookings?text=petrova")
		rows(1)
		b.check("found")
		b.open(w.personURL("+393331234500"))
		b.reads("Ada Rossi")
		b.check("person")
	})
}

// TestNewBookingStory: the person is chosen among the contacts, whose data fill the form, and the messages are shown
// before the appointment is made.
func TestNewBookingStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		_, err := w.Client().AddContact(context.Background(), control.NewContact{Phone: "+393331234567", Name: "Ada Rossi"}, control.Once[puntuale.Contact]{})
		w.must(err)
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/bookings/new")
		b.check("no-sequence")
		w.sequence(bookedVisit())
		b.open(w.pages + "/bookings")
		b.check("empty")
		b.leaves(func() { b.click(`.head-actions a[href*="/bookings/new"]`) })
		b.check("new")
		b.fill("phone", "Ada")
		b.until(`document.querySelector("#people option[value='+393331234567']")`)
		b.fill("phone", "+393331234567")
		b.until(`document.querySelector("[name='fields.nome']").value === "Ada Rossi"`)
		b.fill("fields.appuntamento", "2026-11-24T15:30")
		b.until(`document.querySelector("#booking-preview").innerText.includes("24 novembre") && document.querySelectorAll(".difference-line").length === 2`)
		b.check("filled")
		b.leaves(func() { b.click("[name=do][value=save]") })
		b.until(`document.querySelectorAll(".booking").length === 1`)
		b.check("made")
	})
}

// TestMoveNeedsItsDifference: a move saves only what the screen showed. The undo puts back the date and the confirmation,
// unless somebody has changed the booking since.
func TestMoveNeedsItsDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.book(w.sequence(bookedVisit()), "p/1", "+393331234567", "Ada", "24/11/2026 15:30", "confirmed")
	v := w.visitor(w.clients[puntuale.Staff])
	at := fmt.Sprintf("%s/bookings/%d", w.pages, id)
	form := url.Values{"date": {"2026-11-25"}, "time": {"16:00"}, "tell": {"on"}, "do": {"save"}, "next": {"javascript:alert(1)"}}
	unseen := v.post(at+"/move", form)
	if unseen.status != http.StatusOK || w.booking("p/1").Revision != 2 || strings.Contains(unseen.body, "javascript:") {
		t.Fatalf("unseen: %d, revision %d: %s", unseen.status, w.booking("p/1").Revision, mainOf(unseen.body))
	}
	seen := formTo(unseen.body, at+"/move")
	seen.Set("do", "save")
	other := url.Values{}
	for name, values := range seen {
		other[name] = values
	}
	other.Set("time", "17:00")
	if got := v.post(at+"/move", other); got.status != http.StatusOK || w.booking("p/1").Revision != 2 {
		t.Fatalf("another time: %d, revision %d", got.status, w.booking("p/1").Revision)
	}
	if got := v.post(at+"/move", seen); got.status != http.StatusSeeOther || got.to() != at {
		t.Fatalf("seen: %d %s", got.status, got.to())
	}
	if got := w.booking("p/1"); got.Status != puntuale.BookingOpen || got.StatusBy != puntuale.DoorPage {
		t.Errorf("moved: %v by %v", got.Status, got.StatusBy)
	}
	undo := html.UnescapeString(between(v.get(at).body, `action="`+at+`/undo`, `"`))
	if got := v.post(at+"/undo"+undo, nil); got.status != http.StatusSeeOther {
		t.Errorf("undo: %d", got.status)
	}
	if got := w.booking("p/1"); got.Status != puntuale.BookingConfirmed || !got.Date.Equal(time.Date(2026, 11, 24, 14, 30, 0, 0, time.UTC)) {
		t.Errorf("after the undo: %v, %v", got.Status, got.Date)
	}
	if got := w.plannedOf("p/1"); strings.Contains(got, "conferma") || strings.Contains(got, "è ora") {
		t.Errorf("after the undo, the person hears of %q", got)
	}
	v.post(at+"/undo"+undo, nil) // twice, and so too late
	if got := w.booking("p/1"); got.Status != puntuale.BookingConfirmed || !strings.Contains(v.get(at).body, "Nel frattempo") {
		t.Errorf("an undo that is too late: %v", got.Status)
	}
	for _, wrong := range []url.Values{{"date": {""}}, {"date": {"boh"}, "time": {"x"}}} {
		wrong.Set("do", "save")
		if got := v.post(at+"/move", wrong); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="f-date-fault"`) {
			t.Errorf("%v: %d", wrong, got.status)
		}
	}
}

// TestUnseenChange: a button of a list sets no status of a booking that somebody else has changed since.
func TestUnseenChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.book(w.sequence(bookedVisit()), "p1", "+393331234567", "Ada", "24/11/2026 15:30", "")
	v := w.visitor(w.clients[puntuale.Staff])
	list := w.pages + "/bookings?day=2026-11-24"
	version := between(v.get(list).body, `name="version" value="`, `"`)
	_, err := w.Client().CancelBooking(context.Background(), control.BookingCall{Reference: "p1", Door: puntuale.DoorPerson})
	w.must(err)
	form := url.Values{"version": {version}, "next": {list}}
	if got := v.post(fmt.Sprintf("%s/bookings/%d/confirm", w.pages, id), form); got.to() != fmt.Sprintf("%s#b%d", list, id) || w.booking("p1").Status != puntuale.BookingCancelled {
		t.Errorf("confirmed unseen: %d %s, %v", got.status, got.to(), w.booking("p1").Status)
	}
	page := v.get(list).body
	if !strings.Contains(page, "Nel frattempo") || !strings.Contains(page, "dalla persona") {
		t.Errorf("the page does not say who: %s", mainOf(page))
	}
	form.Set("version", between(page, `name="version" value="`, `"`))
	if v.post(fmt.Sprintf("%s/bookings/%d/reopen", w.pages, id), form); w.booking("p1").Status != puntuale.BookingOpen {
		t.Errorf("reopened by who has seen it: %v", w.booking("p1").Status)
	}
}

// TestBookingRoles: a reader sees no buttons, and another client's user nothing.
func TestBookingRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.book(w.sequence(bookedVisit()), "p1", "+393331234567", "Ada", "20/11/2026 15:30", "")
	reader := w.visitor(w.clients[puntuale.Reader])
	for _, path := range []string{"/bookings", "/bookings?view=week&open=yes", "/bookings?text=ada", fmt.Sprintf("/bookings/%d", id), "/bookings?day=boh&cursor="} {
		got := reader.get(w.pages + path)
		main := mainOf(got.body)
		if got.status != http.StatusOK || !strings.Contains(main, "Ada") || strings.Contains(main, `method="post"`) || strings.Contains(main, "popovertarget") || strings.Contains(main, "/bookings/new") {
			t.Errorf("%s: %d %s", path, got.status, main)
		}
	}
	if got := reader.post(fmt.Sprintf("%s/bookings/%d/confirm", w.pages, id), nil); got.status != http.StatusForbidden {
		t.Errorf("a reader confirms: %d", got.status)
	}
	stranger := w.visitor(w.foreignOwner)
	for _, path := range []string{fmt.Sprintf("%s/bookings/%d", w.pages, id), fmt.Sprintf("/c/%d/bookings/%d", w.foreignClient, id), fmt.Sprintf("/c/%d/bookings/%d/move", w.foreignClient, id)} {
		if got := stranger.get(path); got.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	if got := reader.get(w.pages + "/bookings?text=" + strings.Repeat("x", 300)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a long text: %d", got.status)
	}
}

// TestMessageNamesItsBooking: the page of a message leads to the booking for which it was planned.
func TestMessageNamesItsBooking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.book(w.sequence(bookedVisit()), "p1", "+393331234567", "Ada", "24/11/2026 15:30", "")
	v := w.visitor(w.clients[puntuale.Reader])
	message := w.booking("p1").Steps[0].Message
	if got := v.get(fmt.Sprintf("%s/messages/%d", w.pages, message)).body; !strings.Contains(got, fmt.Sprintf(`href="%s/bookings/%d"`, w.pages, id)) {
		t.Error(mainOf(got))
	}
	same := func(page string) string {
		page = strings.ReplaceAll(numbered(mainOf(page)), id.String(), "N")
		return strings.ReplaceAll(page, string(w.booking("p1").Version()), "V")
	}
	golden(t, "bookings", same(w.visitor(w.clients[puntuale.Staff]).get(w.pages+"/bookings?day=2026-11-24").body))
	golden(t, "booking", same(v.get(fmt.Sprintf("%s/bookings/%d", w.pages, id)).body))
}

// TestSecondClickBooksOnce: a form that is sent twice makes one booking.
func TestSecondClickBooksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sequence := w.sequence(bookedVisit())
	v := w.visitor(w.clients[puntuale.Staff])
	form := formTo(v.get(w.pages+"/bookings/new?day=2026-11-24").body, w.pages+"/bookings")
	if form.Get("fields.appuntamento") != "2026-11-24T09:00" || form.Get("sequence") != sequence {
		t.Errorf("the form begins with %v", form)
	}
	form.Set("do", "save")
	if got := v.post(w.pages+"/bookings", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="f-phone-fault"`) || !strings.Contains(got.body, `id="f-fields.nome-fault"`) {
		t.Errorf("empty: %d %s", got.status, mainOf(got.body))
	}
	form.Set("phone", "333 123 4567")
	form.Set("fields.nome", "Ada")
	for i, want := range []string{"/bookings?day=2026-11-24#b", "/bookings/"} {
		if got := v.post(w.pages+"/bookings", form); got.status != http.StatusSeeOther || !strings.HasPrefix(got.to(), w.pages+want) {
			t.Errorf("click %d: %d %s", i+1, got.status, got.to())
		}
	}
	if found, _, err := w.Client().Bookings(context.Background(), control.BookingQuery{}); err != nil || len(found) != 1 {
		t.Errorf("%d bookings, %v", len(found), err)
	}
}
