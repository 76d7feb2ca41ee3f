package official_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

var slots = &puntuale.Interactive{List: &puntuale.ChoiceList{Button: "Scegli", Sections: []puntuale.ListSection{
	{Title: "Lunedì", Rows: []puntuale.ListRow{{Title: "10:00", Text: "con Ada", Payload: "lun.10"}, {Title: "11:00"}}},
	{Title: "Martedì", Rows: []puntuale.ListRow{{Title: "9:00", Payload: strings.Repeat("è", puntuale.MaxPayload)}}},
}}}

// offering returns a content with an interactive part.
func offering(text string, x *puntuale.Interactive) puntuale.Content {
	return puntuale.Content{Text: text, Interactive: x}
}

// TestInteractive: inside the window, a list, a link and a request leave in Meta's form.
func TestInteractive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.wrote(person)
	link := offering("Il conto", &puntuale.Interactive{Link: &puntuale.LinkButton{Label: "Apri", URL: "https://e.com/o/17"}})
	pictured := link
	pictured.MediaURL = "https://e.com/a.jpg"
	for name, test := range map[string]struct {
		content puntuale.Content
		kind    string
		header  *graphtest.Header
		want    func(graphtest.Taken) graphtest.InteractiveAction
	}{
		"list": {offering(strings.Repeat("è", 4000), slots), "list", nil, func(m graphtest.Taken) graphtest.InteractiveAction {
			tap := func(row int, payload string) string {
				return w.vault.TapPayload(w.c.ID, puntuale.Tap{Message: messageOf(t, m), Button: row, Payload: payload})
			}
			return graphtest.InteractiveAction{Button: "Scegli", Sections: []graphtest.Section{
				{Title: "Lunedì", Rows: []graphtest.Row{{ID: tap(0, "lun.10"), Title: "10:00", Description: "con Ada"}, {ID: tap(1, ""), Title: "11:00"}}},
				{Title: "Martedì", Rows: []graphtest.Row{{ID: tap(2, strings.Repeat("è", 128)), Title: "9:00"}}},
			}}
		}},
		"link": {link, "cta_url", nil, func(graphtest.Taken) graphtest.InteractiveAction {
			return graphtest.InteractiveAction{Name: "cta_url", Link: &graphtest.Link{Label: "Apri", URL: "https://e.com/o/17"}}
		}},
		"link below a picture": {pictured, "cta_url", &graphtest.Header{Type: "image", Image: &graphtest.Media{}}, func(graphtest.Taken) graphtest.InteractiveAction {
			return graphtest.InteractiveAction{Name: "cta_url", Link: &graphtest.Link{Label: "Apri", URL: "https://e.com/o/17"}}
		}},
		"position": {offering("Dove sei?", &puntuale.Interactive{Ask: puntuale.AskLocation}), "location_request_message", nil, func(graphtest.Taken) graphtest.InteractiveAction {
			return graphtest.InteractiveAction{Name: "send_location"}
		}},
		"number": {offering("Il tuo numero?", &puntuale.Interactive{Ask: puntuale.AskPhone}), "request_contact_info", nil, func(graphtest.Taken) graphtest.InteractiveAction {
			return graphtest.InteractiveAction{Name: "request_contact_info"}
		}},
	} {
		taken := w.must(person, test.content)
		got := taken.Message
		fileIDs(&got)
		want := &graphtest.InteractiveMessage{Type: test.kind, Header: test.header, Action: test.want(taken)}
		want.Body.Text = test.content.Text
		if diff := cmp.Diff(want, got.Interactive); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	audio := offering("Il conto", link.Interactive)
	audio.MediaURL = "https://e.com/a.mp3"
	w.refusedBy(person, audio, puntuale.Final)
	w.clock.Advance(25 * time.Hour)
	w.until("online again", func() bool { return w.conn.Online(w.session) })
	w.refusedBy(person, link, puntuale.Final)
}

// TestInteractiveInGroups: a group gets text.
func TestInteractiveInGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const group = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"
	w.allowGroups()
	w.deliver(w.peer.Event("101", "messages", "messages", object{"from": person[1:], "type": "text", "group_id": group, "timestamp": fmt.Sprint(w.clock.Now().Unix())}))
	c := offering("Quando?", slots.Clone())
	c.Interactive.List.Line = "Scrivi:"
	got := w.must(group, c).Message
	if want := "Quando?\n\nScrivi:\nLunedì\n1. 10:00 – con Ada\n2. 11:00\nMartedì\n3. 9:00"; got.Text == nil || got.Text.Body != want {
		t.Errorf("%+v", got)
	}
}

// TestOwnPayloads: a button's own payload stands in what Meta repeats. A template's quick reply takes only a short one.
func TestOwnPayloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.peer.SetTemplates(w.number.Account, listedWith("visita", [2]string{"QUICK_REPLY", "Sì"}, [2]string{"QUICK_REPLY", "No"}))
	w.test()
	long := strings.Repeat("n", puntuale.MaxPayload)
	c := approved("visita")
	c.Asks = &puntuale.ButtonSet{Buttons: []puntuale.StepButton{{Label: "Sì", Payload: "ordine.17"}, {Label: "No", Payload: long}}}
	outside := w.must(person, c)
	c.Asks, c.Interactive = nil, slots
	for _, x := range w.must(person, c).Message.Template.Components {
		if x.Type == "button" {
			t.Errorf("a row's payload at the quick reply %+v", x)
		}
	}
	c.Asks, c.Interactive = &puntuale.ButtonSet{Buttons: []puntuale.StepButton{{Label: "Sì", Payload: "ordine.17"}, {Label: "No", Payload: long}}}, nil
	w.wrote(person)
	c.Official, c.Text = nil, "Viene?"
	inside := w.must(person, c)
	tap := func(m graphtest.Taken, n int, payload string) string {
		return w.vault.TapPayload(w.c.ID, puntuale.Tap{Message: messageOf(t, m), Button: n, Payload: payload})
	}
	var got []string
	for _, x := range outside.Message.Template.Components {
		if x.Type == "button" {
			got = append(got, x.Parameters[0].Payload)
		}
	}
	for _, b := range inside.Message.Interactive.Action.Buttons {
		got = append(got, b.Reply.ID)
	}
	if diff := cmp.Diff([]string{tap(outside, 0, "ordine.17"), tap(outside, 1, ""), tap(inside, 0, "ordine.17"), tap(inside, 1, long)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAddressSuffix: the end of an address is percent-encoded, once.
func TestAddressSuffix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for given, want := range map[string]string{
		"abc": "abc", "ordine 17": "ordine%2017", "a:b|c": "a%3Ab%7Cc", "città": "citt%C3%A0", "a%20b": "a%20b", "100%": "100%25", "o/17?x=1&y=2#z": "o/17?x=1&y=2#z", "%2": "%252", `a"b<c>`: "a%22b%3Cc%3E",
	} {
		c := approved("visita")
		c.Official.Buttons = []puntuale.Button{{Index: 1, Kind: puntuale.ButtonURL, Text: given}}
		taken := w.must(person, c)
		last := taken.Message.Template.Components[len(taken.Message.Template.Components)-1]
		if got := last.Parameters[0].Text; got != want || last.Index != "1" {
			t.Errorf("%q is sent as %+v", given, last)
		}
		w.clock.Advance(time.Minute)
	}
}

// TestAnswersToRequests: the answers to a list, to the requests and to a form are told with what they answer. The number
// that a person gives when asked is another name of this person, while the number on another card is not.
func TestAnswersToRequests(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, driver storetest.Driver) {
		var h heard
		w := newWorld(t, setup{driver: driver, config: h.config})
		const id = "IT.1502576394655843"
		w.peer.Know(id, graphtest.Name{ID: id})
		w.deliver(w.peer.Wrote(w.number.ID, id, w.clock.Now()))
		list := w.must(id, offering("Quando?", slots))
		ask := w.must(id, offering("Dove sei?", &puntuale.Interactive{Ask: puntuale.AskLocation}))
		phone := w.must(id, offering("Il tuo numero?", &puntuale.Interactive{Ask: puntuale.AskPhone}))
		now := w.clock.Now()
		row := func(n int, payload string) string {
			return w.vault.TapPayload(w.c.ID, puntuale.Tap{Message: messageOf(t, list), Button: n, Payload: payload})
		}
		for name, test := range map[string]struct {
			body []byte
			want puntuale.InboundMessage
		}{
			"a row":           {w.peer.Tap(list, 0, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "10:00", Payload: row(0, "lun.10"), Quoted: list.WAMID}},
			"a long payload":  {w.peer.Tap(list, 2, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "9:00", Payload: row(2, strings.Repeat("è", 128)), Quoted: list.WAMID}},
			"without context": {w.peer.TapAlone(list, 1, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "11:00", Payload: row(1, "")}},
			"a position":      {w.peer.Located(ask, 45.07, 7.6869, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyLocation, Text: "45.07,7.6869", Quoted: ask.WAMID}},
			"a shared card":   {w.peer.Shared(phone, "other", "393339999999", "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyContact, Text: "Ugo Bassi: +393339999999", Quoted: phone.WAMID}},
			"a form":          {w.peer.Filled(list, `{"a":1}`, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyOther, Text: "Sent", Quoted: list.WAMID}},
		} {
			h.next()
			w.deliver(test.body)
			all := h.next()
			test.want.Client, test.want.Session, test.want.Phone, test.want.ID, test.want.At = w.c.ID, w.session, id, "wamid.a", now.Truncate(time.Second)
			if len(all) != 1 {
				t.Errorf("%s: told %+v", name, all)
			} else if diff := cmp.Diff(test.want, all[0]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		names := func() int64 { return w.w.Int("select count(*) from alias") }
		if n := names(); n != 0 {
			t.Errorf("a shared card gave %d names", n)
		}
		w.deliver(w.peer.Shared(phone, "contact_request", "393331112223", "wamid.b", now))
		if all := h.next(); len(all) != 1 || all[0].Kind != puntuale.ReplyContact || all[0].Text != "+393331112223" || all[0].Quoted != phone.WAMID {
			t.Errorf("the number: %+v", all)
		}
		if n := names(); n == 0 {
			t.Error("the number is no name of the person")
		}
		w.must("+393331112223", text("Grazie")) // the window of the person's id is open under the number, too
	})
}
