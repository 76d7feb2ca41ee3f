//go:build !nosocket

package socket_test

import (
	"testing"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"puntuale"
	"puntuale/internal/connector/socket/whatsapptest"
)

var confirmOrNot = &puntuale.ButtonSet{Buttons: []puntuale.StepButton{{Label: "Confermo", Does: puntuale.ButtonConfirms}, {Label: "Annullo", Does: puntuale.ButtonCancels}}}

// TestNumberedLines: each button of a message is a numbered line below its text. An audio has no text, so it has no
// buttons either.
func TestNumberedLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	have := files{}
	for url, kind := range map[string]string{"https://x/foto.jpg": "image/jpeg", "https://x/film.mp4": "video/mp4", "https://x/a.pdf": "application/pdf", "https://x/canzone.mp3": "audio/mpeg"} {
		have[url] = struct {
			kind string
			body []byte
		}{kind, []byte(url)}
	}
	w.media = have
	w.stop()
	w.start()
	anna := w.net.Phone(annaNumber)
	w.link()
	for _, test := range []struct {
		content puntuale.Content
		kind    string
		text    string
	}{
		{puntuale.Content{Text: "Viene?"}, "text", "Viene?\n\nRispondi con il numero:\n1. Confermo\n2. Annullo"},
		{puntuale.Content{Text: "Viene?", Asks: &puntuale.ButtonSet{Buttons: confirmOrNot.Buttons, Line: "Answer:"}}, "text", "Viene?\n\nAnswer:\n1. Confermo\n2. Annullo"},
		{puntuale.Content{Text: "Viene?", MediaURL: "https://x/foto.jpg"}, "image", "Viene?\n\nRispondi con il numero:\n1. Confermo\n2. Annullo"},
		{puntuale.Content{Text: "Viene?", MediaURL: "https://x/film.mp4"}, "video", "Viene?\n\nRispondi con il numero:\n1. Confermo\n2. Annullo"},
		{puntuale.Content{Text: "Viene?", MediaURL: "https://x/a.pdf"}, "document", "Viene?\n\nRispondi con il numero:\n1. Confermo\n2. Annullo"},
	} {
		if test.content.Asks == nil {
			test.content.Asks = confirmOrNot
		}
		r := w.mustSend(w.message("+"+annaNumber, test.content))
		m := anna.Await(t, whatsapptest.ID(r.Detail.String()))
		if m.Kind != test.kind || m.Text != test.text {
			t.Errorf("%+v: the phone shows %+v", test.content, m)
		}
	}
	if _, err := w.send(w.message("+"+annaNumber, puntuale.Content{MediaURL: "https://x/canzone.mp3", Text: "Viene?", Asks: confirmOrNot})); kindOf(err) != puntuale.Final {
		t.Errorf("an audio: %v", err)
	}
}

// TestQuotesAndTaps: a message that quotes one of ours is reported with our message, and a tap with the id of its button. Of
// other quoted messages, the network's id is reported.
func TestQuotesAndTaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, shop := w.net.Phone(annaNumber), w.net.Phone(shopNumber)
	w.link()
	e := w.message("+"+annaNumber, puntuale.Content{Text: "Viene?", Asks: confirmOrNot})
	sent := w.mustSend(e).Detail.String()
	quote := func(id string) *waE2E.ContextInfo {
		return &waE2E.ContextInfo{StanzaID: &id, Participant: proto.String(shopNumber + "@s.whatsapp.net"), QuotedMessage: conversation("Viene?")}
	}
	saying := func(id string) *waE2E.Message {
		return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String("1"), ContextInfo: quote(id)}}
	}
	const other = "3A5C9E0B2D7F4A6C8E1B"
	for name, test := range map[string]struct {
		message   *waE2E.Message
		payload   string
		inReplyTo puntuale.MessageID
		quoted    string
	}{
		"a text":         {saying(sent), "", e.Message, ""},
		"disappearing":   {&waE2E.Message{EphemeralMessage: wrapped(saying(sent))}, "", e.Message, ""},
		"an image":       {&waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: proto.String("1"), Mimetype: proto.String("image/jpeg"), ContextInfo: quote(sent)}}, "", e.Message, ""},
		"a voice note":   {&waE2E.Message{AudioMessage: &waE2E.AudioMessage{Mimetype: proto.String("audio/ogg"), ContextInfo: quote(sent)}}, "", e.Message, ""},
		"a place":        {&waE2E.Message{LocationMessage: &waE2E.LocationMessage{DegreesLatitude: proto.Float64(45), DegreesLongitude: proto.Float64(7), ContextInfo: quote(sent)}}, "", e.Message, ""},
		"another's text": {saying(other), "", 0, other},
		"nothing quoted": {conversation("1"), "", 0, ""},
		"a button": {&waE2E.Message{ButtonsResponseMessage: &waE2E.ButtonsResponseMessage{SelectedButtonID: proto.String("si"), ContextInfo: quote(sent),
			Response: &waE2E.ButtonsResponseMessage_SelectedDisplayText{SelectedDisplayText: "Confermo"}}}, "si", e.Message, ""},
		"a row": {&waE2E.Message{ListResponseMessage: &waE2E.ListResponseMessage{Title: proto.String("Domani"), ContextInfo: quote(sent),
			SingleSelectReply: &waE2E.ListResponseMessage_SingleSelectReply{SelectedRowID: proto.String("riga-2")}}}, "riga-2", e.Message, ""},
		"a button of a template": {&waE2E.Message{TemplateButtonReplyMessage: &waE2E.TemplateButtonReplyMessage{SelectedID: proto.String("si"), SelectedDisplayText: proto.String("Sì"), ContextInfo: quote(other)}}, "si", 0, other},
		"a native button": {&waE2E.Message{InteractiveResponseMessage: &waE2E.InteractiveResponseMessage{ContextInfo: quote(sent), Body: &waE2E.InteractiveResponseMessage_Body{Text: proto.String("Sì")},
			InteractiveResponseMessage: &waE2E.InteractiveResponseMessage_NativeFlowResponseMessage_{NativeFlowResponseMessage: &waE2E.InteractiveResponseMessage_NativeFlowResponseMessage{
				Name: proto.String("quick_reply"), ParamsJSON: proto.String(`{"id":"si"}`)}}}}, "si", e.Message, ""},
		"an odd native button": {&waE2E.Message{InteractiveResponseMessage: &waE2E.InteractiveResponseMessage{Body: &waE2E.InteractiveResponseMessage_Body{Text: proto.String("Sì")},
			InteractiveResponseMessage: &waE2E.InteractiveResponseMessage_NativeFlowResponseMessage_{NativeFlowResponseMessage: &waE2E.InteractiveResponseMessage_NativeFlowResponseMessage{
				ParamsJSON: proto.String(`{"id":`)}}}}, "", 0, ""},
	} {
		h := w.awaitTold(w.write(anna, shopNumber, test.message))
		if h.Payload != test.payload || h.InReplyTo != test.inReplyTo || h.Quoted != test.quoted || h.Own {
			t.Errorf("%s: %+v", name, h)
		}
	}
	// What the client's own people write answers no message.
	if h := w.awaitTold(w.write(shop, annaNumber, saying(sent))); !h.Own || h.InReplyTo != 0 || h.Quoted != "" {
		t.Errorf("own: %+v", h)
	}
}
