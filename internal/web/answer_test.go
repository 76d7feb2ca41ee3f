package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
	"puntuale/internal/store/storetest"
)

// arrives lets a pending message leave, and arrive at the simulated phone.
func (f *traffic) arrives(id puntuale.MessageID) {
	f.w.t.Helper()
	ctx := context.Background()
	all, err := f.tenant.Details(ctx, []puntuale.MessageID{id})
	f.w.must(err)
	m := all[0]
	now, token, ref := f.w.clock.Now(), storetest.Token(f.node), puntuale.MessageRef{Client: f.w.client, ID: id}
	granted, err := f.w.store.Claim(ctx, puntuale.Claim{Node: f.node, Token: token, Now: now, Messages: []puntuale.ClaimItem{{MessageRef: ref, Phone: m.Phone}}})
	f.w.must(err)
	if granted[0] != puntuale.ClaimGranted {
		f.w.t.Fatalf("claim: %v", granted[0])
	}
	_, err = f.w.store.Record(ctx, now, []puntuale.Result{{MessageRef: ref, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}})
	f.w.must(err)
	f.w.must(f.w.store.Receive(ctx, puntuale.SandboxMessage{Client: f.w.client, Message: id, ConnectorID: puntuale.ConnectorID(id, 0), Phone: m.Phone, Content: m.Content, Received: now}))
}

// TestAnswerStory: the editor gives a message buttons, the preview shows them, and a press on the simulated phone confirms
// the appointment.
func TestAnswerStory(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		said := func(italian, english string) string {
			if b.look.language == "en" {
				return english
			}
			return italian
		}
		f := w.traffic()
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sequences/new?like=booking")
		b.until(`document.querySelectorAll(".timeline .bubble").length === 2`)
		b.click(".step-buttons summary")
		b.until(`document.querySelector("[name='steps[0].buttons[0].label']").checkVisibility()`)
		b.fill("steps[0].buttons[0].label", said("Confermo", "I confirm"), "steps[0].buttons[1].label", said("Non posso", "I can't come"))
		b.until(`document.querySelectorAll(".timeline .bubble-buttons li").length === 2`)
		b.fill("steps[0].buttons[2].label", said("Confermo!", "i confirm"))
		b.click(".editor-save .btn-primary")
		b.reads(said("Un altro pulsante dice già la stessa cosa", "Another button says the same already"))
		b.until(`getComputedStyle(document.querySelector(".editor-save .btn-primary")).opacity === "1"`) // while the form is sent, the button is pale
		b.check("twice")
		b.fill("steps[0].buttons[2].label", said("Chiamatemi", "Call me"))
		b.until(`document.querySelectorAll(".timeline .bubble-buttons li").length === 3`)
		b.check("editor")
		b.click(".editor-save .btn-primary")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		rows, _, err := f.tenant.Sequences(context.Background(), puntuale.SequenceFilter{Newest: true}, puntuale.Page{Limit: 1})
		w.must(err)
		s := rows[0]
		if got, want := fmt.Sprint(s.Steps[0].Buttons), said("[{Confermo confirm } {Non posso cancel } {Chiamatemi answer }]", "[{I confirm confirm } {I can't come cancel } {Call me answer }]"); got != want {
			t.Fatalf("the buttons are %s", got)
		}

		made, err := w.Client().PutBooking(context.Background(), control.BookingCall{Reference: "v1", Sequence: s.ID.String(), Phone: "+393331234567", Door: puntuale.DoorAPI, Body: []byte("{}"),
			Fields: fieldsOf(s, "2027-01-20T15:30")})
		w.must(err)
		f.arrives(made.Pending()[0])
		b.open(w.pages + "/phone?phone=%2B393331234567")
		b.check("question")
		b.press(said("Confermo", "I confirm"))
		b.until(`document.readyState === "complete" && document.querySelectorAll(".handset-chat .bubble:not(.bubble-in)").length === 1`)
		if got := w.statusOf("v1"); got != "confirmed" {
			t.Errorf("after the press: %s", got)
		}
		b.check("pressed")
		b.open(w.personURL("+393331234567"))
		b.reads(said("Ha risposto a una domanda su un appuntamento", "Answered a question about an appointment"))
		b.until(`[...document.querySelectorAll(".turn-effect .tag")].every((tag) => tag.getBoundingClientRect().right <= tag.closest(".bubble").getBoundingClientRect().right)`)
		b.check("conversation")
		b.open(w.pages + "/settings")
		b.fill("confirm_words", "ci vediamo\nsì", "button_line", said("Scrivi il numero:", "Write the number:"))
		b.press(said("Salva", "Save"))
		b.reads(said("Impostazioni salvate.", "Settings saved."))
		set, err := w.Client().Settings(context.Background())
		w.must(err)
		if fmt.Sprintf("%v %v %s", set.ConfirmWords, set.CancelWords, set.ButtonLine) != "[ci vediamo sì] [] "+said("Scrivi il numero:", "Write the number:") {
			t.Errorf("the settings: %q %q %q", set.ConfirmWords, set.CancelWords, set.ButtonLine)
		}
		b.check("settings")
	})
}

// fieldsOf returns a value for each field of a sequence: the date for dates, and a name for the others.
func fieldsOf(s puntuale.Sequence, date string) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	for _, f := range plan.Fields(s) {
		fields[f.Name] = json.RawMessage(`"Ada"`)
		if f.Kind == puntuale.FieldDate {
			fields[f.Name] = json.RawMessage(`"` + date + `"`)
		}
	}
	return fields
}

// TestAnswerComesLive: the page of appointments shows what a person answers without a click.
func TestAnswerComesLive(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		said := func(italian, english string) string {
			if b.look.language == "en" {
				return english
			}
			return italian
		}
		f := w.traffic()
		visit := bookedVisit()
		visit.Steps[0].Buttons = []puntuale.StepButton{{Label: "Confermo", Does: puntuale.ButtonConfirms}, {Label: "Non posso", Does: puntuale.ButtonCancels}}
		sequence := w.sequence(visit)
		for i, name := range []string{"Ada Rossi", "Bruno Conti"} {
			w.book(sequence, fmt.Sprintf("p%d", i), fmt.Sprintf("+39333123450%d", i), name, "21/11/2026 15:30", "")
		}
		for i := range 2 {
			f.arrives(w.booking(fmt.Sprintf("p%d", i)).Steps[0].Message)
		}
		press := func(i int, label string) {
			t.Helper()
			_, err := w.Client().AnswerFromSandbox(context.Background(), control.SandboxReply{Session: f.session.String(), Phone: fmt.Sprintf("+39333123450%d", i), Button: label})
			w.must(err)
		}
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/bookings?day=2026-11-21")
		b.until(`document.querySelectorAll(".booking").length === 2`)
		b.until(`document.querySelector("[hx-sse\\:connect]")`)
		row := func(i int) string {
			return fmt.Sprintf(`document.querySelector("#b%d").innerText`, w.booking(fmt.Sprintf("p%d", i)).ID)
		}
		press(0, "Confermo")
		b.ticking(row(0) + `.includes("Confermo") && ` + row(0) + `.includes(` + quote(said("Confermato", "Confirmed")) + `)`)
		press(1, "Non posso")
		b.ticking(row(1) + `.includes("Non posso") && ` + row(1) + `.includes(` + quote(said("Annullato", "Cancelled")) + `)`)
		b.reads(said("uno confermato, uno annullato", "one confirmed, one cancelled"))
		b.check("answered")
	})
}

// TestButtonsOfOneMessage: a single message and an answer in a conversation may have buttons, too.
func TestButtonsOfOneMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	form := url.Values{"phone": {"+393331234567"}, "text": {"Ti è piaciuto?"}, "purpose": {"service"}, "when": {"now"}, "buttons[1].label": {"Sì"}, "buttons[2].label": {"No"}}
	if r := v.post(w.pages+"/messages/new", form); r.status != http.StatusSeeOther {
		t.Fatalf("a message: %d %s", r.status, r.body)
	}
	shown := func() string {
		t.Helper()
		all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{Phone: "+393331234567", Page: request.Page{Limit: "1"}})
		w.must(err)
		return all[0].Content.Shown()
	}
	if got := shown(); got != "Ti è piaciuto?\n\nRispondi con il numero:\n1. Sì\n2. No" {
		t.Errorf("the message: %q", got)
	}
	form.Set("text", "E ora?")
	form.Set("buttons[2].label", "sì!")
	for _, path := range []string{"/messages/new", "/person/answer"} {
		if r := v.post(w.pages+path, form); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, "Un altro pulsante dice già la stessa cosa") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	form.Set("buttons[2].label", "Chiamami")
	if r := v.post(w.pages+"/person/answer", form); r.status != http.StatusSeeOther || !strings.HasSuffix(shown(), "1. Sì\n2. Chiamami") {
		t.Errorf("an answer: %d %q", r.status, shown())
	}
}
