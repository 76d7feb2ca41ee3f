package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// TestOfferStory: a person writes a step with a list, a link or a question, sees it as the phone will show it, and answers
// it on the simulated phone.
func TestOfferStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		said := func(italian, english string) string {
			if b.look.language == "en" {
				return english
			}
			return italian
		}
		const phone = "+393331234567"
		f := w.traffic()
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sequences/new")
		b.fill("name", "Scelta", "steps[0].text", "Ciao {{nome}}, quando vieni?")
		b.click(".step-buttons summary")
		b.check("buttons")
		b.click("[name='steps[0].offer'][value=list]")
		b.fill("steps[0].interactive.list.button", said("Scegli", "Choose"), "steps[0].interactive.list", "# Lunedì\n10:00 | con Ada | lun.10\n11:00\n# Martedì\n{{ora|9:00}} | una riga troppo lunga per stare sotto un titolo, perché ha più di settantadue caratteri")
		b.click(".editor-save .btn-primary")
		b.reads("«{{ora|9:00}}»:")
		b.until(`document.getElementById("f-steps[0].interactive.list-fault") && document.activeElement.name === "steps[0].interactive.list"`)
		b.check("fault")
		b.fill("steps[0].interactive.list", "# Lunedì\n10:00 | con Ada | lun.10\n11:00\n# Martedì\n{{ora|9:00}} | con Ugo")
		b.until(`document.querySelectorAll(".timeline .bubble-list li").length === 3`)
		b.check("list")
		b.leaves(func() { b.click(".editor-save .btn-primary") })
		b.until(`/\/sequences\/\d+$/.test(location.pathname)`)
		b.check("sequence")
		rows, _, err := f.tenant.Sequences(context.Background(), puntuale.SequenceFilter{Newest: true}, puntuale.Page{Limit: 1})
		w.must(err)
		s := rows[0]
		want := []puntuale.ListSection{{Title: "Lunedì", Rows: []puntuale.ListRow{{Title: "10:00", Text: "con Ada", Payload: "lun.10"}, {Title: "11:00"}}}, {Title: "Martedì", Rows: []puntuale.ListRow{{Title: "{{ora|9:00}}", Text: "con Ugo"}}}}
		if x := s.Steps[0].Interactive; x == nil || x.List == nil {
			t.Fatalf("stored %+v", s.Steps[0])
		} else if diff := cmp.Diff(want, x.List.Sections); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.open(w.pages + "/sequences/" + s.ID.String() + "/edit")
		b.until(`document.querySelector("[name='steps[0].interactive.list']").checkVisibility()`)
		if got := evaluate[string](b, `document.querySelector("[name='steps[0].interactive.list']").value`); got != "# Lunedì\n10:00 | con Ada | lun.10\n11:00\n# Martedì\n{{ora|9:00}} | con Ugo" {
			t.Errorf("the editor has %q", got)
		}
		started, err := w.Client().Start(context.Background(), control.StartCall{Sequence: s.ID.String(), Phone: phone, Fields: map[string]json.RawMessage{"nome": json.RawMessage(`"Ada"`)}, Body: []byte("{}"), Scope: "x", Key: "k"})
		w.must(err)
		f.arrives(started.IDs[0])
		b.open(w.pages + "/phone?phone=%2B393331234567")
		b.press(said("Scegli", "Choose"))
		b.check("opened")
		b.leaves(func() { b.click(".handset-buttons [name=row][value='2']") })
		b.until(`document.querySelectorAll(".handset-chat .bubble:not(.bubble-in)").length === 1`)
		b.check("chosen")

		b.open(w.pages + "/messages/new?phone=" + phone)
		b.fill("text", "Il suo ordine è pronto.")
		b.click(".offers-of summary")
		b.click("[name=offer][value=link]")
		b.click("[name=purpose][value=service]")
		b.fill("interactive.link.label", "Apri", "interactive.link.url", "http://example.com")
		b.click("main form button.btn-primary")
		b.reads("https://")
		b.until(`document.querySelectorAll(".fault").length === 1`)
		b.check("single")
		b.fill("interactive.link.url", "https://example.com/ordini/17")
		b.until(`document.querySelector(".phone-screen .bubble-buttons")?.innerText.includes("ordini/17")`)
		b.leaves(func() { b.click("main form button.btn-primary") })
		sent := w.latest()
		if x := sent.Content.Interactive; x == nil || x.Link == nil || *x.Link != (puntuale.LinkButton{Label: "Apri", URL: "https://example.com/ordini/17"}) {
			t.Fatalf("sent %+v", sent.Content)
		}
		b.check("sent")
		f.arrives(sent.ID)

		b.open(w.personURL(phone))
		b.fill("text", "Dove sei?")
		b.click(".offers-of summary")
		b.click("[name=offer][value=ask_location]")
		b.check("answering")
		b.leaves(func() { b.click(".answer button.btn-primary") })
		f.arrives(w.latest().ID)
		b.open(w.pages + "/phone?phone=%2B393331234567")
		b.until(`document.querySelector(".handset-buttons a[target=_blank][rel~=noopener]")?.href === "https://example.com/ordini/17"`)
		b.check("asked")
		b.leaves(func() { b.click(".handset-buttons [name=shares]") })
		b.open(w.personURL(phone))
		b.reads("45.4642,9.18999")
		b.check("conversation")
	})
}

// latest returns the client's newest message.
func (w *world) latest() puntuale.MessageDetail {
	w.t.Helper()
	all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{})
	w.must(err)
	return all[0]
}

// TestListLines: the lines of a list give the same list again, whatever its texts contain.
func TestListLines(t *testing.T) {
	t.Parallel()
	for _, all := range [][]puntuale.ListSection{
		{{Rows: []puntuale.ListRow{{Title: "a"}, {Title: "b", Text: "c"}, {Title: "d", Payload: "e"}, {Title: "f", Text: "g", Payload: "h"}}}},
		{{Title: "x", Rows: []puntuale.ListRow{{Title: "# 1"}, {Title: `a|b\c`, Text: "|", Payload: "x\ny|z|w"}}}, {Title: "#y", Rows: []puntuale.ListRow{{Title: "{{nome|a te}}", Text: "{{ora|}} | x", Payload: `{{a|b}}\`}}}},
		{{Title: "x", Rows: []puntuale.ListRow{{Title: "a"}}}, {Rows: []puntuale.ListRow{{Title: "{{"}}}},
	} {
		lines := view.ListLines(all)
		if diff := cmp.Diff(all, view.SectionsIn(lines)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", lines, diff)
		}
	}
	got := fmt.Sprint(view.SectionsIn("\n a |b\n#\n|x| y | z | w\r\n"))
	if want := "[{ [{a b }]} { [{ x y | z | w}]}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestOfferPhoneRefuses: a press that the phone cannot make changes nothing.
func TestOfferPhoneRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	session, err := w.store.Tenant(w.client).DefaultSession(t.Context())
	w.must(err)
	for _, form := range [][]string{{"row", "7"}, {"shares", "phone"}, {"shares", "age"}} {
		values := view.NewForm("phone", "+393331234567", "key", "k", form[0], form[1]).Values
		if r := v.post(w.pages+"/sessions/"+session.ID.String()+"/phone", values); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", form, r.status)
		}
	}
}

// TestOfferFile: a sequence in a file keeps what stands below its messages. A button without an effect only answers.
func TestOfferFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	const file = `{"name":"File","steps":[{"text":"a","interactive":{"list":{"button":"b","sections":[{"rows":[{"title":"c","text":"d","payload":"e"}]}]}},"timing":{"anchor":"start","offset":{"amount":0}}},
{"text":"a","buttons":[{"label":"f","payload":"g"}],"timing":{"anchor":"start","offset":{"amount":0}}}]}`
	newest := func() puntuale.Sequence {
		rows, _, err := w.store.Tenant(w.client).Sequences(t.Context(), puntuale.SequenceFilter{Newest: true}, puntuale.Page{Limit: 1})
		w.must(err)
		return rows[0]
	}
	v.post(w.pages+"/sequences/import", view.NewForm("content", file).Values)
	first := newest()
	want := []puntuale.StepButton{{Label: "f", Does: puntuale.ButtonAnswers, Payload: "g"}}
	if x := first.Steps[0].Interactive; x == nil || x.List.Sections[0].Rows[0] != (puntuale.ListRow{Title: "c", Text: "d", Payload: "e"}) || !cmp.Equal(first.Steps[1].Buttons, want) {
		t.Fatalf("imported %+v", first.Steps)
	}
	v.post(w.pages+"/sequences/import", view.NewForm("content", v.get(w.pages+"/sequences/"+first.ID.String()+"/export").body).Values)
	if second := newest(); second.ID == first.ID || !cmp.Equal(first.Steps, second.Steps) {
		t.Errorf("again %+v", second.Steps)
	}
}
