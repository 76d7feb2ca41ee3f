package sendapp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/replyfile"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/store/storetest"
)

type object = map[string]any

const chat = "393331234567@s.whatsapp.net" // the chat with person

func wrapped(name string, inner object) object { return object{name: object{"message": inner}} }

// inboundTests are contents of all types, with the kind and text that must be reported.
var inboundTests = map[string]struct {
	content object
	kind    puntuale.ReplyKind
	text    string
}{
	"text":                   {object{"conversation": "ciao 👍", "messageContextInfo": object{}}, puntuale.ReplyText, "ciao 👍"},
	"a text with NUL":        {object{"conversation": "a\x00b"}, puntuale.ReplyText, "ab"},
	"an endless text":        {object{"conversation": strings.Repeat("è", 9000)}, puntuale.ReplyText, strings.Repeat("è", puntuale.MaxReply)},
	"an answer":              {object{"extendedTextMessage": object{"text": "sì", "contextInfo": object{"stanzaId": "x", "quotedMessage": object{"conversation": "no"}}}}, puntuale.ReplyText, "sì"},
	"disappearing":           {wrapped("ephemeralMessage", wrapped("viewOnceMessageV2", object{"conversation": "sparisce"})), puntuale.ReplyText, "sparisce"},
	"an edit":                {wrapped("editedMessage", object{"protocolMessage": object{"type": 14, "key": object{"id": "x"}, "editedMessage": object{"conversation": "corretto"}}}), puntuale.ReplyText, "corretto"},
	"a place":                {object{"locationMessage": object{"degreesLatitude": 45.07, "degreesLongitude": 7.6869, "name": "Studio"}}, puntuale.ReplyLocation, "Studio\n45.07,7.6869"},
	"a contact":              {object{"contactMessage": object{"displayName": "Ada", "vcard": "BEGIN:VCARD"}}, puntuale.ReplyContact, "Ada"},
	"contacts":               {object{"contactsArrayMessage": object{"displayName": "2", "contacts": []any{object{"displayName": "Ada"}, object{"displayName": "Ugo"}}}}, puntuale.ReplyContact, "Ada, Ugo"},
	"a reaction":             {object{"reactionMessage": object{"key": object{"id": "x"}, "text": "👍"}}, puntuale.ReplyReaction, "👍"},
	"a button":               {object{"buttonsResponseMessage": object{"selectedButtonId": "1", "selectedDisplayText": "Confermo"}}, puntuale.ReplyButton, "Confermo"},
	"a row":                  {object{"listResponseMessage": object{"title": "Domani"}}, puntuale.ReplyButton, "Domani"},
	"a button of a template": {object{"templateButtonReplyMessage": object{"selectedId": "1", "selectedDisplayText": "Basta"}}, puntuale.ReplyButton, "Basta"},
	"a poll":                 {object{"pollCreationMessageV3": object{"name": "Quando?"}}, puntuale.ReplyOther, "Quando?"},
	"an order":               {object{"orderMessage": object{"message": "due pizze"}}, puntuale.ReplyOther, ""},
	"of another shape":       {object{"conversation": object{"x": 1}}, puntuale.ReplyText, ""},
}

// TestInbound: each message of any type is reported with its kind and text. Each message comes once from a person and
// once from the phone's owner. A repeat gives the same report.
func TestInbound(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	at := w.clock.Now().Truncate(time.Second)
	for name, test := range inboundTests {
		for i, kind := range []string{"notify", "append", "notify", "append"} {
			own := i > 1
			id := fmt.Sprintf("3A%s%d", name, i)
			for range 2 {
				w.report("messages.upsert", gatewaytest.Message(id, chat, own, kind, test.content, at))
				all := w.heard()
				if len(all) != 1 {
					t.Fatalf("%s: told %+v", name, all)
				}
				h := all[0]
				if h.ID != id || h.Phone != person || h.Own != own || h.Group || h.Kind != test.kind || h.Text != test.text || h.Media != nil || h.Client != w.c.ID || h.Session != w.session || !h.At.Equal(at) {
					t.Errorf("%s: %+v", name, h)
				}
			}
		}
	}
}

// TestInboundFiles: the report of a message with a file contains all data that are needed to open the file. The test
// uses each form in which gateways write bytes.
func TestInboundFiles(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	open := replyfile.Opener{Via: w.peer, Folder: t.TempDir()}
	asBuffer := func(b []byte) any {
		all := make([]int, len(b))
		for i := range b {
			all[i] = int(b[i])
		}
		return object{"type": "Buffer", "data": all}
	}
	asObject := func(b []byte) any {
		all := object{}
		for i := range b {
			all[fmt.Sprint(i)] = b[i]
		}
		return all
	}
	for name, test := range map[string]struct {
		keys  string
		more  object
		bytes func([]byte) any
		kind  puntuale.ReplyKind
		file  string
		wraps string
	}{
		"imageMessage":    {"WhatsApp Image Keys", object{"mimetype": "image/jpeg", "caption": "guarda"}, nil, puntuale.ReplyImage, "", ""},
		"stickerMessage":  {"WhatsApp Image Keys", object{"mimetype": "image/webp"}, asBuffer, puntuale.ReplySticker, "", ""},
		"videoMessage":    {"WhatsApp Video Keys", object{"mimetype": "video/mp4", "directPath": "", "caption": "guarda"}, asObject, puntuale.ReplyVideo, "", "viewOnceMessage"},
		"audioMessage":    {"WhatsApp Audio Keys", object{"mimetype": "audio/ogg; codecs=opus", "fileLength": object{"low": 7, "high": 0}}, nil, puntuale.ReplyAudio, "", ""},
		"documentMessage": {"WhatsApp Document Keys", object{"mimetype": "application/pdf", "fileName": "../conto.pdf", "caption": "guarda"}, nil, puntuale.ReplyDocument, "conto.pdf", "documentWithCaptionMessage"},
	} {
		body := strings.Repeat("file of "+name, 5000)
		member := w.peer.Keep(test.keys, []byte(body), test.more)
		for key, value := range maps.Clone(member) {
			if raw, ok := value.([]byte); ok && test.bytes != nil {
				member[key] = test.bytes(raw)
			}
		}
		content := object{name: member}
		if test.wraps != "" {
			content = wrapped(test.wraps, content)
		}
		w.report("messages.upsert", gatewaytest.Message("A"+name, chat, false, "notify", content, w.clock.Now()))
		all := w.heard()
		if len(all) != 1 || all[0].Media == nil || all[0].Kind != test.kind || all[0].Text != fmt.Sprint(orNothing(test.more["caption"])) || all[0].Media.Name != test.file || all[0].Media.Type != test.more["mimetype"] {
			t.Errorf("%s: told %+v", name, all)
			continue
		}
		f, err := open.OpenMedia(t.Context(), puntuale.Session{}, *all[0].Media, int64(len(body)))
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
		if _, err := open.OpenMedia(t.Context(), puntuale.Session{}, *all[0].Media, int64(len(body))-1); puntuale.CodeOf(err) != puntuale.CodeTooLarge {
			t.Errorf("%s is larger than the caller takes: %v", name, err)
		}
		w.peer.Forget()
		if _, err := open.OpenMedia(t.Context(), puntuale.Session{}, *all[0].Media, puntuale.MaxReplyFile); puntuale.CodeOf(err) != puntuale.CodeGone {
			t.Errorf("%s without a file: %v", name, err)
		}
	}
}

func orNothing(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// TestHostileFiles: a gateway may report any address for a file, but only WhatsApp's hosts get a request.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	open := replyfile.Opener{Via: w.peer, Folder: t.TempDir()}
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, at := range []object{
		{"url": "https://evil.example/x"}, {"url": "http://mmg.whatsapp.net/x"}, {"url": "https://mmg.whatsapp.net.evil.example/x"}, {"url": "https://mmg.whatsapp.net:8443/x"},
		{"url": "https://user@mmg.whatsapp.net/x"}, {"url": "https://127.0.0.1/x"}, {"directPath": "@evil.example/x"}, {"directPath": ".evil.example/x"}, {"directPath": ":1/x"}, {"url": "https://evil.example", "directPath": "\x00"}, {},
	} {
		at["mediaKey"], at["mimetype"] = key, "image/png"
		w.report("messages.upsert", gatewaytest.Message("A", chat, false, "notify", object{"imageMessage": at}, w.clock.Now()))
		h := w.heard()[0]
		if _, err := open.OpenMedia(t.Context(), puntuale.Session{}, *h.Media, puntuale.MaxReplyFile); puntuale.CodeOf(err) != puntuale.CodeGone {
			t.Errorf("%v: %v", at, err)
		}
	}
	var e replyfile.EncryptedFile
	if json.Unmarshal([]byte(`{"kind":"image"}`), &e) != nil || e.Ref() != nil {
		t.Error("a file without a key can be opened")
	}
}

// TestInboundOthers: some messages are not reported. These are messages in groups, broadcasts, messages between
// devices, and echoes of our own messages.
func TestInboundOthers(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	at := w.clock.Now()
	text := object{"conversation": "ciao"}
	for name, payload := range map[string]any{
		"a group":            gatewaytest.Message("A1", "123456-789@g.us", false, "notify", text, at),
		"own in a group":     gatewaytest.Message("A2", "123456-789@g.us", true, "notify", text, at),
		"a status":           gatewaytest.Message("A3", "status@broadcast", false, "notify", text, at),
		"a newsletter":       gatewaytest.Message("A4", "12345@newsletter", false, "notify", text, at),
		"a deleted message":  gatewaytest.Message("A5", chat, false, "notify", object{"protocolMessage": object{"type": 0}}, at),
		"keys":               gatewaytest.Message("A6", chat, false, "notify", object{"senderKeyDistributionMessage": object{}, "messageContextInfo": object{}}, at),
		"a stub":             gatewaytest.Message("A7", chat, false, "notify", nil, at),
		"a note to oneself":  gatewaytest.Message("A8", own+"@s.whatsapp.net", true, "notify", text, at),
		"own without an id":  gatewaytest.Message("", chat, true, "notify", text, at),
		"an album":           gatewaytest.Message("A9", chat, false, "notify", object{"albumMessage": object{"expectedImageCount": 2}}, at),
		"a deleted own text": gatewaytest.Message("A10", chat, true, "append", object{"protocolMessage": object{"type": 0}}, at),
	} {
		w.report("messages.upsert", payload)
		if all := w.heard(); len(all) > 0 {
			t.Errorf("%s: told %+v", name, all)
		}
	}
	w.report("messages.upsert", gatewaytest.Message("A11", "177000@lid", false, "notify", text, at))
	if all := w.heard(); len(all) != 1 || all[0].Phone != "177000@lid" {
		t.Errorf("a hidden person: told %+v", all)
	}
	// The first message got an answer with its id. The answer to the second message was lost.
	f := w.fly(person, "da noi")
	s := w.lastSent()
	w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply { return gatewaytest.Reply{Drop: true} })
	lost := w.fly(person, "persa")
	w.record(lost)
	for _, kind := range []string{"notify", "append"} {
		for _, sent := range []gatewaytest.Sent{s, w.lastSent()} {
			w.report("messages.upsert", gatewaytest.Message(sent.ID, chat, true, kind, object{"conversation": sent.Text}, w.clock.Now()))
			if all := w.heard(); len(all) > 0 {
				t.Errorf("an echo as %s: told %+v", kind, all)
			}
		}
	}
	w.state(f, puntuale.Completed)
	w.state(lost, puntuale.Completed)
	// The owner writes the same text later.
	w.report("messages.upsert", gatewaytest.Message("3A99", chat, true, "append", object{"conversation": "persa"}, w.clock.Now()))
	if all := w.heard(); len(all) != 1 || !all[0].Own {
		t.Errorf("told %+v", all)
	}
}

// TestNamesOfGateway: a chat may contain the LID and the number of a person, and the answer to a message another form of
// the number. Stop, blacklist and consent then hold for every form.
func TestNamesOfGateway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := linked(t, d)
		const typed, registered, hidden = "+393331230000", "3933312300@s.whatsapp.net", "177000393332222222@lid"
		w.report("messages.upsert", gatewaytest.Wrote("A1", "393332222222", "ciao", true, w.clock.Now()))
		w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply {
			return gatewaytest.Reply{Sends: true, Body: `{"status":"success","message":{"key":{"remoteJid":"` + registered + `","remoteJidAlt":"99@lid","fromMe":true,"id":"3EB0AA"}}}`}
		})
		w.record(w.fly(typed, "uno"))
		for name, want := range map[string]string{hidden: "+393332222222", "+3933312300": typed} {
			names, err := w.w.Recipients(w.within(), w.c.ID, name)
			if err != nil || !slices.Contains(names, want) {
				t.Errorf("%s: %q, %v", name, names, err)
			}
			if err := w.c.AddBlacklisted(w.within(), puntuale.BlacklistEntry{Phone: name, Added: w.clock.Now()}, storetest.Day, nil); err != nil {
				t.Fatal(err)
			}
			if listed, err := w.c.AmongBlacklisted(w.within(), []string{want}, nil); err != nil || !listed[want] {
				t.Errorf("%s is blocked, but not %s: %v", name, want, err)
			}
		}
		if n := w.w.Int("select count(*) from alias where alias = '" + hidden + "'"); n != 1 {
			t.Errorf("%d rows of the LID", n)
		}
	})
}
