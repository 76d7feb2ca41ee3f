//go:build !nosocket

package socket_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"puntuale"
	"puntuale/internal/connector/replyfile"
	"puntuale/internal/connector/socket/whatsapptest"
)

// toldOf returns all reports of a message, by its id.
func (w *world) toldOf(id string) (all []puntuale.InboundMessage) {
	for _, b := range w.told {
		for _, h := range b.Messages {
			if h.ID == id {
				all = append(all, h)
			}
		}
	}
	return all
}

// awaitTold waits for the first report of a message, and returns it.
func (w *world) awaitTold(id string) (h puntuale.InboundMessage) {
	w.t.Helper()
	w.await("the message "+id, func() bool {
		all := w.toldOf(id)
		if len(all) > 0 {
			h = all[0]
		}
		return len(all) > 0
	})
	return h
}

// write sends a message from a phone, and returns the message's id.
func (w *world) write(p *whatsapptest.Phone, to string, m *waE2E.Message) string {
	w.t.Helper()
	id, err := p.SendMessage(w.t.Context(), to, m)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func wrapped(m *waE2E.Message) *waE2E.FutureProofMessage {
	return &waE2E.FutureProofMessage{Message: m}
}

func conversation(text string) *waE2E.Message {
	return &waE2E.Message{Conversation: proto.String(text)}
}

// inboundTests returns messages of all types. Each has the kind and text that the connector must report.
func inboundTests() map[string]struct {
	message *waE2E.Message
	kind    puntuale.ReplyKind
	text    string
} {
	key := &waCommon.MessageKey{ID: proto.String("3EB0"), FromMe: proto.Bool(true), RemoteJID: proto.String(shopNumber + "@s.whatsapp.net")}
	poll := &waE2E.PollCreationMessage{Name: proto.String("Quando?"), Options: []*waE2E.PollCreationMessage_Option{{OptionName: proto.String("Oggi")}}, SelectableOptionsCount: proto.Uint32(1)}
	return map[string]struct {
		message *waE2E.Message
		kind    puntuale.ReplyKind
		text    string
	}{
		"text":            {conversation("ciao 👍"), puntuale.ReplyText, "ciao 👍"},
		"a text with NUL": {conversation("a\x00b"), puntuale.ReplyText, "ab"},
		"an endless text": {conversation(strings.Repeat("è", 9000)), puntuale.ReplyText, strings.Repeat("è", puntuale.MaxReply)},
		"an answer":       {&waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String("sì"), ContextInfo: &waE2E.ContextInfo{StanzaID: proto.String("x")}}}, puntuale.ReplyText, "sì"},
		"disappearing":    {&waE2E.Message{EphemeralMessage: wrapped(conversation("sparisce"))}, puntuale.ReplyText, "sparisce"},
		"viewed once":     {&waE2E.Message{EphemeralMessage: wrapped(&waE2E.Message{ViewOnceMessageV2: wrapped(conversation("una volta"))})}, puntuale.ReplyText, "una volta"},
		"an edit": {&waE2E.Message{EditedMessage: wrapped(&waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), Key: key, EditedMessage: conversation("corretto")}})}, puntuale.ReplyText, "corretto"},
		"a place":   {&waE2E.Message{LocationMessage: &waE2E.LocationMessage{DegreesLatitude: proto.Float64(45.07), DegreesLongitude: proto.Float64(7.6869), Name: proto.String("Studio")}}, puntuale.ReplyLocation, "Studio\n45.07,7.6869"},
		"a contact": {&waE2E.Message{ContactMessage: &waE2E.ContactMessage{DisplayName: proto.String("Ada"), Vcard: proto.String("BEGIN:VCARD")}}, puntuale.ReplyContact, "Ada"},
		"contacts": {&waE2E.Message{ContactsArrayMessage: &waE2E.ContactsArrayMessage{DisplayName: proto.String("2 contatti"), Contacts: []*waE2E.ContactMessage{
			{DisplayName: proto.String("Ada")}, {}, {DisplayName: proto.String("Ugo")}}}}, puntuale.ReplyContact, "Ada, Ugo"},
		"a reaction":             {&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key, Text: proto.String("👍")}}, puntuale.ReplyReaction, "👍"},
		"a button":               {&waE2E.Message{ButtonsResponseMessage: &waE2E.ButtonsResponseMessage{SelectedButtonID: proto.String("1"), Response: &waE2E.ButtonsResponseMessage_SelectedDisplayText{SelectedDisplayText: "Confermo"}}}, puntuale.ReplyButton, "Confermo"},
		"a row":                  {&waE2E.Message{ListResponseMessage: &waE2E.ListResponseMessage{Title: proto.String("Domani")}}, puntuale.ReplyButton, "Domani"},
		"a button of a template": {&waE2E.Message{TemplateButtonReplyMessage: &waE2E.TemplateButtonReplyMessage{SelectedDisplayText: proto.String("Basta")}}, puntuale.ReplyButton, "Basta"},
		"a poll":                 {&waE2E.Message{PollCreationMessageV3: poll}, puntuale.ReplyOther, "Quando?"},
		"an order":               {&waE2E.Message{OrderMessage: &waE2E.OrderMessage{OrderID: proto.String("1")}}, puntuale.ReplyOther, ""},
	}
}

// TestInbound: each message of any type is reported once, with its kind and text. Each message comes once from a person
// and once from the owner of the linked phone.
func TestInbound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, shop := w.net.Phone(annaNumber), w.net.Phone(shopNumber)
	w.link()
	for name, test := range inboundTests() {
		for _, own := range []bool{false, true} {
			from, to := anna, shopNumber
			if own {
				from, to = shop, annaNumber
			}
			h := w.awaitTold(w.write(from, to, proto.CloneOf(test.message)))
			if h.Phone != "+"+annaNumber || h.Own != own || h.Group || h.Kind != test.kind || h.Text != test.text || h.Media != nil || h.Client != theClient || h.Session != theSession || h.At.IsZero() || h.Chat != anna.LID().String() {
				t.Errorf("%s: %+v", name, h)
			}
		}
	}
}

// TestInboundFiles: the report of a message with a file contains all data that a node needs to open the file.
func TestInboundFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	open := replyfile.Opener{Via: w.net.HTTPClient().Transport, Folder: t.TempDir()}
	for name, test := range map[string]struct {
		of      whatsmeow.MediaType
		message func(up whatsmeow.UploadResponse) *waE2E.Message
		kind    puntuale.ReplyKind
		text    string
		mime    string
		file    string
	}{
		"image": {whatsmeow.MediaImage, func(up whatsmeow.UploadResponse) *waE2E.Message {
			return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: proto.String("guarda"), Mimetype: proto.String("image/jpeg"),
				URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}}
		}, puntuale.ReplyImage, "guarda", "image/jpeg", ""},
		"sticker": {whatsmeow.MediaImage, func(up whatsmeow.UploadResponse) *waE2E.Message {
			return &waE2E.Message{StickerMessage: &waE2E.StickerMessage{Mimetype: proto.String("image/webp"),
				URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}}
		}, puntuale.ReplySticker, "", "image/webp", ""},
		"video": {whatsmeow.MediaVideo, func(up whatsmeow.UploadResponse) *waE2E.Message {
			return &waE2E.Message{ViewOnceMessage: wrapped(&waE2E.Message{VideoMessage: &waE2E.VideoMessage{Caption: proto.String("film"), Mimetype: proto.String("video/mp4"),
				URL: &up.URL, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}})}
		}, puntuale.ReplyVideo, "film", "video/mp4", ""},
		"voice": {whatsmeow.MediaAudio, func(up whatsmeow.UploadResponse) *waE2E.Message {
			return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: proto.Bool(true), Mimetype: proto.String("audio/ogg; codecs=opus"),
				URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}}
		}, puntuale.ReplyAudio, "", "audio/ogg; codecs=opus", ""},
		"document": {whatsmeow.MediaDocument, func(up whatsmeow.UploadResponse) *waE2E.Message {
			return &waE2E.Message{DocumentWithCaptionMessage: wrapped(&waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{Caption: proto.String("il conto"), Mimetype: proto.String("application/pdf"), FileName: proto.String("../conto.pdf"),
				URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}})}
		}, puntuale.ReplyDocument, "il conto", "application/pdf", "conto.pdf"},
	} {
		body := strings.Repeat("file of "+name, 5000) // longer than the part that is decrypted together
		up, err := anna.Client().Upload(t.Context(), []byte(body), test.of)
		if err != nil {
			t.Fatal(err)
		}
		h := w.awaitTold(w.write(anna, shopNumber, test.message(up)))
		if h.Kind != test.kind || h.Text != test.text || h.Media == nil || h.Media.Type != test.mime || h.Media.Name != test.file || h.Media.Size != int64(len(body)) {
			t.Errorf("%s: %+v %+v", name, h, h.Media)
			continue
		}
		f, err := open.OpenMedia(t.Context(), puntuale.Session{}, *h.Media, puntuale.MaxReplyFile)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(f); err != nil || string(got) != body || f.Size != int64(len(body)) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		// The file cannot be opened with another key. It also cannot be opened after the network removed it.
		var e replyfile.EncryptedFile
		if err := json.Unmarshal(h.Media.Ref, &e); err != nil {
			t.Fatal(err)
		}
		e.Key = append([]byte{}, e.Key...)
		e.Key[0]++
		if _, err := open.OpenMedia(t.Context(), puntuale.Session{}, puntuale.ReplyMedia{Ref: e.Ref()}, puntuale.MaxReplyFile); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
			t.Errorf("%s with another key: %v", name, err)
		}
		w.net.ForgetMedia()
		if _, err := open.OpenMedia(t.Context(), puntuale.Session{}, *h.Media, puntuale.MaxReplyFile); puntuale.CodeOf(err) != puntuale.CodeGone {
			t.Errorf("%s without a file: %v", name, err)
		}
	}
}

// TestInboundOthers: some messages are not reported. These are our own messages, the history, messages between devices,
// and messages in a group that the session never wrote to. The owner's messages to the own number are not reported
// either.
func TestInboundOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, shop := w.net.Phone(annaNumber), w.net.Phone(shopNumber)
	group := w.net.Group("famiglia", shop.Account, anna.Account)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "da noi"))
	key := &waCommon.MessageKey{ID: proto.String("3EB0"), FromMe: proto.Bool(true), RemoteJID: proto.String(shopNumber + "@s.whatsapp.net")}
	for _, m := range []*waE2E.Message{
		{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: key}},
		{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum()}},
		{PinInChatMessage: &waE2E.PinInChatMessage{Key: key}},
		{AlbumMessage: &waE2E.AlbumMessage{ExpectedImageCount: proto.Uint32(2)}},
	} {
		w.write(anna, shopNumber, m)
		w.write(shop, annaNumber, m)
	}
	w.write(anna, group.JID().String(), conversation("nel gruppo"))
	w.write(shop, group.JID().String(), conversation("nel gruppo"))
	w.write(shop, shopNumber, conversation("appunto"))
	if err := shop.Share(t.Context()); err != nil { // the history contains a month-old message from Anna
		t.Fatal(err)
	}
	w.awaitTold(w.write(anna, shopNumber, conversation("fine")))
	w.awaitTold(w.write(shop, annaNumber, conversation("fine")))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.told {
		for _, h := range b.Messages {
			if h.Text != "fine" {
				t.Errorf("told: %+v", h)
			}
		}
	}
}

// TestInboundGroup: in a group that the session writes to, an answer is reported without its text. The client's own
// message in that group is not reported.
func TestInboundGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna, shop := w.net.Phone(annaNumber), w.net.Phone(shopNumber)
	group := w.net.Group("clienti", shop.Account, anna.Account)
	w.link()
	id := group.JID().String()
	w.mustSend(w.text(id, "a tutti"))
	w.write(shop, id, conversation("io"))
	w.write(anna, id, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: &waCommon.MessageKey{ID: proto.String("3EB0")}, Text: proto.String("👍")}})
	w.write(anna, id, conversation("eccomi"))
	var got []puntuale.InboundMessage
	w.await("the group's message", func() bool {
		got = nil
		for _, b := range w.told {
			got = append(got, b.Messages...)
		}
		return len(got) > 0
	})
	if h := got[0]; len(got) != 1 || h.Phone != id || !h.Group || h.ID != "" || h.Text != "" || h.Own {
		t.Errorf("told: %+v", got)
	}
}

// TestInboundAgain: a message that could not be stored is reported again with the same id. If the session knows both
// names of a person, only the report under one name has the id.
func TestInboundAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	w.mustSend(w.text("+"+annaNumber, "prima"))
	w.mustSend(w.text(anna.LID().String(), "poi"))
	id := w.write(anna, shopNumber, conversation("ciao"))
	w.awaitTold(id)
	w.mu.Lock()
	names := map[string]string{}
	for _, b := range w.told {
		for _, h := range b.Messages {
			names[h.Phone] = h.ID
		}
	}
	if len(names) != 2 || names["+"+annaNumber] != id || names[anna.LID().String()] != "" {
		t.Errorf("told: %v", names)
	}
	w.fails = io.ErrUnexpectedEOF
	w.mu.Unlock()
	id = w.write(anna, shopNumber, conversation("di nuovo"))
	w.await("the failure", func() bool { return len(w.failed) > 0 })
	w.mu.Lock()
	w.fails = nil
	w.mu.Unlock()
	w.net.CutAll()
	w.awaitTold(id)
}

// TestHiddenNameIsAlias: a person's LID is a name of the person, also if the number was known first. It is reported once.
func TestHiddenNameIsAlias(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	anna := w.net.Phone(annaNumber)
	w.link()
	for range 3 {
		w.awaitTold(w.write(anna, shopNumber, conversation("ciao")))
	}
	want, n := puntuale.Alias{Client: theClient, Session: theSession, Name: anna.LID().String(), Phone: "+" + annaNumber}, 0
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.told {
		for _, x := range b.Aliases {
			if x == want {
				n++
			}
		}
	}
	if n != 1 {
		t.Errorf("the LID was reported %d times: %+v", n, w.told)
	}
}
