package sendapp_test

import (
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/store/storetest"
)

var question = puntuale.Content{Text: "Viene {a|b}?", Asks: &puntuale.ButtonSet{Buttons: []puntuale.StepButton{
	{Label: "Confermo", Does: puntuale.ButtonConfirms}, {Label: "Annullo", Does: puntuale.ButtonCancels},
}}}

// TestNumberedLines: each button of a message is a numbered line below its text. An echo with this text proves that the
// message was sent, even if the gateway's answer was lost.
func TestNumberedLines(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := linked(t, d)
		const want = "Viene {aǀb}?\n\nRispondi con il numero:\n1. Confermo\n2. Annullo"
		w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply { return gatewaytest.Reply{Drop: true} })
		withFile := question
		withFile.MediaURL = "https://example.com/foto.jpg"
		for i, c := range []puntuale.Content{question, withFile} {
			w.until("looked at", func() bool { return w.conn.Online(w.session) })
			f := w.flyContent(number(i), c)
			w.record(f)
			if got := w.lastSent(); got.Text != want || got.Media != c.MediaURL {
				t.Errorf("sent %+v", got)
			}
			w.state(f, puntuale.Pending)
			w.report("messages.upsert", gatewaytest.Echo(w.lastSent(), w.clock.Now()))
			w.state(f, puntuale.Completed)
		}
	})
}

// TestQuotesAndTaps: a message that quotes one of ours is reported with our message, and a tap with the id of its button. Of
// other quoted messages, the network's id is reported.
func TestQuotesAndTaps(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := linked(t, d)
		f := w.flyContent(person, question)
		w.record(f)
		sent := w.lastSent().ID
		quote := func(id string) object {
			return object{"stanzaId": id, "participant": own + "@s.whatsapp.net", "quotedMessage": object{"conversation": "Viene?"}}
		}
		saying := func(id string) object {
			return object{"extendedTextMessage": object{"text": "1", "contextInfo": quote(id)}}
		}
		for name, test := range map[string]struct {
			content   object
			payload   string
			inReplyTo puntuale.MessageID
			quoted    string
		}{
			"a text":                 {saying(sent), "", f.id, ""},
			"disappearing":           {wrapped("ephemeralMessage", saying(sent)), "", f.id, ""},
			"an image":               {object{"imageMessage": object{"caption": "1", "contextInfo": quote(sent)}}, "", f.id, ""},
			"a place":                {object{"locationMessage": object{"degreesLatitude": 45.07, "contextInfo": quote(sent)}}, "", f.id, ""},
			"another's text":         {saying("3A5C9E0B"), "", 0, "3A5C9E0B"},
			"an id with a NUL":       {saying("3A\x005C"), "", 0, "3A5C"},
			"an endless id":          {saying(strings.Repeat("A", 4096)), "", 0, strings.Repeat("A", 129) + "…"},
			"nothing quoted":         {object{"conversation": "1"}, "", 0, ""},
			"an odd quote":           {object{"extendedTextMessage": object{"text": "1", "contextInfo": object{"stanzaId": object{}}}}, "", 0, ""},
			"a button":               {object{"buttonsResponseMessage": object{"selectedButtonId": "si", "selectedDisplayText": "Confermo", "contextInfo": quote(sent)}}, "si", f.id, ""},
			"a row":                  {object{"listResponseMessage": object{"title": "Domani", "singleSelectReply": object{"selectedRowId": "riga-2"}, "contextInfo": quote(sent)}}, "riga-2", f.id, ""},
			"a button of a template": {object{"templateButtonReplyMessage": object{"selectedId": "si", "selectedDisplayText": "Sì", "contextInfo": quote("3A5C")}}, "si", 0, "3A5C"},
			"a native button": {object{"interactiveResponseMessage": object{"body": object{"text": "Sì"}, "contextInfo": quote(sent),
				"nativeFlowResponseMessage": object{"name": "quick_reply", "paramsJson": `{"id":"si"}`}}}, "si", f.id, ""},
			"an odd native button": {object{"interactiveResponseMessage": object{"body": object{"text": "Sì"}, "nativeFlowResponseMessage": object{"paramsJson": `{"id":`}}}, "", 0, ""},
		} {
			w.report("messages.upsert", gatewaytest.Message("A"+name, chat, false, "notify", test.content, w.clock.Now()))
			all := w.heard()
			if len(all) != 1 || all[0].Payload != test.payload || all[0].InReplyTo != test.inReplyTo || all[0].Quoted != test.quoted {
				t.Errorf("%s: told %+v", name, all)
			}
		}
		// What the client's own people write answers no message.
		w.report("messages.upsert", gatewaytest.Message("3A99", chat, true, "append", saying(sent), w.clock.Now()))
		if all := w.heard(); len(all) != 1 || !all[0].Own || all[0].InReplyTo != 0 || all[0].Quoted != "" {
			t.Errorf("own: told %+v", all)
		}
	})
}
