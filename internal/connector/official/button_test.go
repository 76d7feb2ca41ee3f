package official_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
)

var confirmOrNot = &puntuale.ButtonSet{Buttons: []puntuale.StepButton{{Label: "Confermo", Does: puntuale.ButtonConfirms}, {Label: "Annullo", Does: puntuale.ButtonCancels}}}

// asking returns a content with two buttons.
func asking(c puntuale.Content) puntuale.Content {
	c.Asks = confirmOrNot
	return c
}

// tapsOf returns the payloads of the first buttons of an accepted message.
func (w *world) tapsOf(m graphtest.Taken, buttons int) (all []string) {
	for i := range buttons {
		all = append(all, w.vault.TapPayload(w.c.ID, puntuale.Tap{Message: messageOf(w.t, m), Button: i}))
	}
	return all
}

// TestReplyButtons: inside the window, a text with buttons is an interactive message. Its buttons have the payloads of
// the message, and a file is above the text.
func TestReplyButtons(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.wrote(person)
	for name, test := range map[string]struct {
		content puntuale.Content
		header  *graphtest.Header
	}{
		"text":     {text("Viene domani? https://example.com"), nil},
		"image":    {puntuale.Content{Text: "Viene?", MediaURL: "https://e.com/a.jpg"}, &graphtest.Header{Type: "image", Image: &graphtest.Media{}}},
		"video":    {puntuale.Content{Text: "Viene?", MediaURL: "https://e.com/a.mp4"}, &graphtest.Header{Type: "video", Video: &graphtest.Media{}}},
		"document": {puntuale.Content{Text: "Viene?", MediaURL: "https://e.com/a.pdf", MediaName: "Invito.pdf"}, &graphtest.Header{Type: "document", Document: &graphtest.Media{Filename: "Invito.pdf"}}},
		"long":     {text(strings.Repeat("è", 1024)), nil},
	} {
		taken := w.must(person, asking(test.content))
		taps := w.tapsOf(taken, 2)
		got := taken.Message
		ids := fileIDs(&got)
		want := graphtest.Message{Product: "whatsapp", RecipientType: "individual", To: person, Type: "interactive", Token: got.Token, Interactive: &graphtest.InteractiveMessage{Type: "button", Header: test.header}}
		want.Interactive.Body.Text = test.content.Text
		want.Interactive.Action.Buttons = make([]graphtest.ReplyButton, 2)
		for i, b := range confirmOrNot.Buttons {
			button := &want.Interactive.Action.Buttons[i]
			button.Type, button.Reply.ID, button.Reply.Title = "reply", taps[i], b.Label
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if test.header != nil && (len(ids) != 1 || addressOf(w.peer.File(ids[0])) != test.content.MediaURL) {
			t.Errorf("%s: files %v", name, ids)
		}
	}
}

// TestReplyButtonsWithoutPayloads: without the function for payloads, a button has its label as its id.
func TestReplyButtonsWithoutPayloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{config: func(c *official.Config) { c.TapPayload = nil }})
	w.wrote(person)
	for _, b := range w.must(person, asking(text("Viene?"))).Message.Interactive.Action.Buttons {
		if b.Reply.ID != b.Reply.Title || b.Reply.ID == "" {
			t.Errorf("%+v", b)
		}
	}
}

// TestButtonsInGroups: groups get no buttons, but numbered lines.
func TestButtonsInGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const group = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"
	w.allowGroups()
	w.deliver(w.peer.Event("101", "messages", "messages", object{"from": person[1:], "type": "text", "group_id": group, "timestamp": fmt.Sprint(w.clock.Now().Unix())}))
	got := w.must(group, asking(text("Venite?"))).Message
	if want := "Venite?\n\nRispondi con il numero:\n1. Confermo\n2. Annullo"; got.Text == nil || got.Text.Body != want {
		t.Errorf("%+v", got)
	}
}

// listedWith returns a template with buttons, as Meta lists it. Each button is its kind and its text.
func listedWith(name string, buttons ...[2]string) graphtest.ListedTemplate {
	listed := graphtest.NewTemplate(name, "Viene, {{1}}?")
	var all []any
	for _, b := range buttons {
		all = append(all, map[string]any{"type": b[0], "text": b[1]})
	}
	listed.Components = append(listed.Components, map[string]any{"type": "BUTTONS", "buttons": all})
	return listed
}

// TestQuickReplies: the quick replies of a template get, by their order, the payloads of the message's buttons. All other
// buttons of the template stay as they are. If the template has fewer quick replies, or if its buttons are not known, the
// message leaves with fewer payloads.
func TestQuickReplies(t *testing.T) {
	t.Parallel()
	const link, reply = "URL", "QUICK_REPLY"
	button := func(index int, kind puntuale.ButtonKind, text string) puntuale.Button {
		return puntuale.Button{Index: index, Kind: kind, Text: text}
	}
	const first, second = "of the first button", "of the second button"
	for name, test := range map[string]struct {
		listed [][2]string // nil: Meta's list does not have the template
		own    []puntuale.Button
		want   map[string]string // payloads and texts by index
	}{
		"two replies":           {[][2]string{{reply, "Sì"}, {reply, "No"}}, nil, map[string]string{"0": first, "1": second}},
		"among others":          {[][2]string{{link, "Mappa"}, {reply, "Sì"}, {"PHONE_NUMBER", "Chiama"}, {reply, "No"}}, []puntuale.Button{button(0, puntuale.ButtonURL, "abc")}, map[string]string{"0": "abc", "1": first, "3": second}},
		"with payloads already": {[][2]string{{reply, "Sì"}, {reply, "No"}, {reply, "Forse"}}, []puntuale.Button{button(2, puntuale.ButtonReply, "maybe"), button(1, puntuale.ButtonReply, "no")}, map[string]string{"0": first, "1": second, "2": "maybe"}},
		"one reply":             {[][2]string{{link, "Mappa"}, {reply, "Sì"}}, nil, map[string]string{"1": first}},
		"no reply":              {[][2]string{{link, "Mappa"}}, nil, map[string]string{}},
		"no buttons":            {[][2]string{}, nil, map[string]string{}},
		"not listed":            {nil, []puntuale.Button{button(0, puntuale.ButtonReply, "own")}, map[string]string{"0": "own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			if test.listed != nil {
				w.peer.SetTemplates(w.number.Account, listedWith("visita", test.listed...))
				w.test()
			}
			content := asking(approved("visita"))
			content.Official.Buttons = test.own
			taken := w.must(person, content)
			got := map[string]string{}
			for _, c := range taken.Message.Template.Components {
				if c.Type == "button" {
					got[c.Index] = c.Parameters[0].Payload + c.Parameters[0].Text
				}
			}
			taps := w.tapsOf(taken, 2)
			for index, payload := range got {
				switch payload {
				case taps[0]:
					got[index] = first
				case taps[1]:
					got[index] = second
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(content.Official.Buttons) != len(test.own) {
				t.Errorf("the caller's content changed: %+v", content.Official)
			}
		})
	}
}

// TestQuotesAndTaps: a tap is reported with the payload of its button, and each answer with the message that it answers.
func TestQuotesAndTaps(t *testing.T) {
	t.Parallel()
	var h heard
	w := newWorld(t, setup{config: h.config})
	w.peer.SetTemplates(w.number.Account, listedWith("visita", [2]string{"URL", "Mappa"}, [2]string{"QUICK_REPLY", "Sì"}, [2]string{"QUICK_REPLY", "No"}))
	w.test()
	outside := w.must(person, asking(approved("visita")))
	w.wrote(person)
	inside := w.must(person, asking(text("Viene?")))
	now := w.clock.Now()
	quoting := func(kind string, content any) []byte {
		return w.peer.Quoting("101", person, "wamid.a", inside.WAMID, now, kind, content)
	}
	for name, test := range map[string]struct {
		body []byte
		want puntuale.InboundMessage
	}{
		"a reply button": {w.peer.Tap(inside, 1, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Annullo", Payload: w.tapsOf(inside, 2)[1], Quoted: inside.WAMID}},
		"a quick reply":  {w.peer.Tap(outside, 0, "wamid.a", now), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Sì", Payload: w.tapsOf(outside, 1)[0], Quoted: outside.WAMID}},
		"a row": {quoting("interactive", object{"type": "list_reply", "list_reply": object{"id": "riga-1", "title": "Domani", "description": "alle 9"}}),
			puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Domani", Payload: "riga-1", Quoted: inside.WAMID}},
		"a quoted text":  {quoting("text", object{"body": "confermo"}), puntuale.InboundMessage{Kind: puntuale.ReplyText, Text: "confermo", Quoted: inside.WAMID}},
		"a quoted image": {quoting("image", object{"id": "", "caption": "ecco"}), puntuale.InboundMessage{Kind: puntuale.ReplyImage, Text: "ecco", Quoted: inside.WAMID}},
		"a form": {quoting("interactive", object{"type": "nfm_reply", "nfm_reply": object{"name": "flow", "body": "Sent", "response_json": "{}"}}),
			puntuale.InboundMessage{Kind: puntuale.ReplyOther, Text: "Sent", Quoted: inside.WAMID}},
		"an odd tap": {quoting("button", object{"text": "Sì", "payload": 7}), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Sì", Quoted: inside.WAMID}},
		"forwarded": {w.peer.Event("101", "messages", "messages", object{"from": person[1:], "id": "wamid.a", "timestamp": fmt.Sprint(now.Unix()), "type": "text", "text": object{"body": "ciao"}, "context": object{"forwarded": true}}),
			puntuale.InboundMessage{Kind: puntuale.ReplyText, Text: "ciao"}},
		"an odd context": {w.peer.Event("101", "messages", "messages", object{"from": person[1:], "id": "wamid.a", "timestamp": fmt.Sprint(now.Unix()), "type": "text", "text": object{"body": "ciao"}, "context": []any{1}}),
			puntuale.InboundMessage{Kind: puntuale.ReplyText, Text: "ciao"}},
		"an endless payload": {quoting("button", object{"text": "Sì", "payload": strings.Repeat("x", 5000)}), puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Sì", Payload: strings.Repeat("x", 640), Quoted: inside.WAMID}},
	} {
		h.next()
		w.deliver(test.body)
		all := h.next()
		if len(all) != 1 {
			t.Errorf("%s: told %+v", name, all)
			continue
		}
		test.want.Client, test.want.Session, test.want.Phone, test.want.ID, test.want.At = w.c.ID, w.session, person, "wamid.a", now.Truncate(time.Second)
		if diff := cmp.Diff(test.want, all[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// What the business writes in its app answers nobody's question.
	w.deliver(w.peer.Echo("101", person, "wamid.b", now, "button", object{"text": "Sì", "payload": "x"}))
	if all := h.next(); len(all) != 1 || all[0].Payload != "" || !all[0].Own {
		t.Errorf("an echo: %+v", all)
	}
}
