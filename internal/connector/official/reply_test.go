package official_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/connector/official"
)

// heard records the inbound messages that a connector reported.
type heard struct {
	mu  sync.Mutex
	all []puntuale.InboundMessage
	raw []puntuale.InboundBatch
}

// config makes the connector also report to h.
func (h *heard) config(c *official.Config) {
	take := c.Take
	c.Take = func(ctx context.Context, s puntuale.SessionID, in puntuale.InboundBatch) error {
		h.mu.Lock()
		h.all, h.raw = append(h.all, in.Messages...), append(h.raw, in)
		h.mu.Unlock()
		return take(ctx, s, in)
	}
}

// next returns the inbound messages since the last call of next.
func (h *heard) next() []puntuale.InboundMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all, h.raw = nil, nil
	return all
}

type object = map[string]any

// inboundTests are messages of all types, as Meta writes them, with the kind and text that must be reported.
var inboundTests = map[string]struct {
	kind    string
	content any
	is      puntuale.ReplyKind
	text    string
	media   *puntuale.ReplyMedia // the test does not compare Until
}{
	"text":                   {"text", object{"body": "sì, è così 👍"}, puntuale.ReplyText, "sì, è così 👍", nil},
	"image":                  {"image", object{"id": "11", "mime_type": "image/jpeg", "sha256": "c2hh", "caption": "ecco"}, puntuale.ReplyImage, "ecco", media("image/jpeg", "", "11", "c2hh")},
	"video":                  {"video", object{"id": "12", "mime_type": "video/mp4", "sha256": "c2hh"}, puntuale.ReplyVideo, "", media("video/mp4", "", "12", "c2hh")},
	"audio":                  {"audio", object{"id": "13", "mime_type": "audio/mpeg", "sha256": "c2hh", "voice": false}, puntuale.ReplyAudio, "", media("audio/mpeg", "", "13", "c2hh")},
	"voice":                  {"audio", object{"id": "14", "mime_type": "audio/ogg; codecs=opus", "sha256": "c2hh", "voice": true}, puntuale.ReplyAudio, "", media("audio/ogg; codecs=opus", "", "14", "c2hh")},
	"document":               {"document", object{"id": "15", "mime_type": "application/pdf", "sha256": "c2hh", "filename": "../conto\u0000.pdf", "caption": "il conto"}, puntuale.ReplyDocument, "il conto", media("application/pdf", "conto.pdf", "15", "c2hh")},
	"sticker":                {"sticker", object{"id": "16", "mime_type": "image/webp", "sha256": "c2hh", "animated": false}, puntuale.ReplySticker, "", media("image/webp", "", "16", "c2hh")},
	"location":               {"location", object{"latitude": 45.07, "longitude": 7.6869, "name": "Studio", "address": "Via Po 1"}, puntuale.ReplyLocation, "Studio\nVia Po 1\n45.07,7.6869", nil},
	"contacts":               {"contacts", []any{object{"name": object{"formatted_name": "Ada Neri", "first_name": "Ada"}, "phones": []any{object{"phone": "+39 333"}}}, object{"name": object{"first_name": "Ugo"}}}, puntuale.ReplyContact, "Ada Neri: +39 333\nUgo", nil},
	"reaction":               {"reaction", object{"message_id": "wamid.x", "emoji": "👍"}, puntuale.ReplyReaction, "👍", nil},
	"a reaction taken back":  {"reaction", object{"message_id": "wamid.x"}, puntuale.ReplyReaction, "", nil},
	"a button of a template": {"button", object{"text": "Basta", "payload": "STOP-1"}, puntuale.ReplyButton, "Basta", nil},
	"a button":               {"interactive", object{"type": "button_reply", "button_reply": object{"id": "1", "title": "Confermo"}}, puntuale.ReplyButton, "Confermo", nil},
	"a row":                  {"interactive", object{"type": "list_reply", "list_reply": object{"id": "1", "title": "Domani", "description": "alle 9"}}, puntuale.ReplyButton, "Domani", nil},
	"a form":                 {"interactive", object{"type": "nfm_reply", "nfm_reply": object{"name": "flow", "body": "Sent", "response_json": "{}"}}, puntuale.ReplyOther, "Sent", nil},
	"an order":               {"order", object{"catalog_id": "1", "text": "due pizze", "product_items": []any{}}, puntuale.ReplyOther, "due pizze", nil},
	"unsupported":            {"unsupported", object{"type": "poll"}, puntuale.ReplyOther, "", nil},
	"not available":          {"unsupported", []any{}, puntuale.ReplyOther, "", nil},
	"of a later version":     {"hologram", object{"body": "x"}, puntuale.ReplyOther, "", nil},
	"of another shape":       {"text", []any{1}, puntuale.ReplyText, "", nil},
	"an edit":                {"edit", object{"original_message_id": "wamid.x", "message": object{"type": "text", "text": object{"body": "corretto"}}}, puntuale.ReplyText, "corretto", nil},
	"a text with a NUL":      {"text", object{"body": "a\u0000b"}, puntuale.ReplyText, "ab", nil},
	"an endless text":        {"text", object{"body": strings.Repeat("è", 9000)}, puntuale.ReplyText, strings.Repeat("è", puntuale.MaxReply), nil},
}

func media(kind, name, id, sha string) *puntuale.ReplyMedia {
	return &puntuale.ReplyMedia{Type: kind, Name: name, Ref: fmt.Appendf(nil, `{"id":%q,"sha256":%q}`, id, sha)}
}

// TestInbound: each message of any type is reported with its kind and text. A repeated webhook gives the same report.
func TestInbound(t *testing.T) {
	t.Parallel()
	var h heard
	w := newWorld(t, setup{config: h.config})
	at := w.clock.Now().Add(-time.Minute).Truncate(time.Second)
	for name, test := range inboundTests {
		for _, own := range []bool{false, true} {
			id := "wamid." + name
			body := w.peer.Inbound("101", person, id, at, test.kind, test.content)
			if own {
				body = w.peer.Echo("101", person, id, at, test.kind, test.content)
			}
			for range 2 {
				w.deliver(body)
				all := h.next()
				if len(all) != 1 {
					t.Fatalf("%s: told %+v", name, all)
				}
				got := all[0]
				if got.ID != id || got.Phone != person || !got.At.Equal(at) || got.Own != own || got.Group || got.Kind != test.is || got.Text != test.text || got.Client != w.c.ID || got.Session != w.session {
					t.Errorf("%s: %+v", name, got)
				}
				if !utf8.ValidString(got.Text) {
					t.Errorf("%s: %q", name, got.Text)
				}
				if (got.Media == nil) != (test.media == nil) {
					t.Errorf("%s: %+v", name, got.Media)
				} else if m := got.Media; m != nil && (m.Type != test.media.Type || m.Name != test.media.Name || string(m.Ref) != string(test.media.Ref) || !m.Until.Equal(w.clock.Now().Add(7*24*time.Hour))) {
					t.Errorf("%s: %+v %s", name, m, m.Ref)
				}
			}
		}
	}
}

// TestInboundOthers: messages in groups and requests for a welcome are reported without content, only to open a window.
// A phone call is reported with its id and kind. Messages that the client's people wrote with another program are
// reported as own messages. Everything else in this table is not reported.
func TestInboundOthers(t *testing.T) {
	t.Parallel()
	var h heard
	w := newWorld(t, setup{config: h.config})
	const group = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"
	at := w.clock.Now()
	event := func(field, list string, part object) []byte {
		part["timestamp"] = fmt.Sprint(at.Unix())
		return w.peer.Event("101", field, list, part)
	}
	typed := object{"from": person[1:], "id": "wamid.1", "type": "text", "text": object{"body": "ciao"}}
	with := func(more ...any) object {
		all := object{}
		for k, v := range typed {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	for name, test := range map[string]struct {
		body []byte
		want []puntuale.InboundMessage
	}{
		"a group":                 {event("messages", "messages", with("group_id", group)), []puntuale.InboundMessage{{Phone: group, Group: true}}},
		"a call":                  {event("calls", "calls", object{"id": "wacid.1", "from": person[1:], "direction": "USER_INITIATED", "event": "connect"}), []puntuale.InboundMessage{{Phone: person, ID: "wacid.1", Kind: puntuale.ReplyCall}}},
		"a welcome":               {event("messages", "messages", with("type", "request_welcome")), []puntuale.InboundMessage{{Phone: person}}},
		"another provider's":      {event("smb_message_echoes", "smb_message_echoes", with("to", "393339999999")), []puntuale.InboundMessage{{Phone: "+393339999999", ID: "wamid.1", Own: true, Kind: puntuale.ReplyText, Text: "ciao"}}},
		"a person without number": {event("smb_message_echoes", "message_echoes", object{"to_user_id": "IT.12", "id": "wamid.1", "type": "text"}), []puntuale.InboundMessage{{Phone: "IT.12", ID: "wamid.1", Own: true, Kind: puntuale.ReplyText}}},

		"an unknown kind":        {event("messages", "messages", object{"from": person[1:], "id": "wamid.1", "type": "unsupported", "errors": []any{object{"code": 131051, "title": "Message type unknown"}}}), []puntuale.InboundMessage{{Phone: person, ID: "wamid.1", Kind: puntuale.ReplyOther}}},
		"not available any more": {event("messages", "messages", object{"from": person[1:], "id": "wamid.1", "type": "unsupported", "errors": []any{object{"code": 131060}}, "unsupported": object{"type": "unknown"}}), []puntuale.InboundMessage{{Phone: person, ID: "wamid.1", Kind: puntuale.ReplyOther}}},

		"a deleted message":        {event("messages", "messages", with("type", "revoke")), nil},
		"a deleted echo":           {event("smb_message_echoes", "message_echoes", with("to", person[1:], "type", "revoke")), nil},
		"an echo in a group":       {event("smb_message_echoes", "message_echoes", with("to", person[1:], "group_id", group)), nil},
		"an echo to nobody":        {event("smb_message_echoes", "message_echoes", with()), nil},
		"an echo without id":       {event("smb_message_echoes", "message_echoes", object{"to": person[1:], "type": "text"}), nil},
		"an echo of our own":       {event("smb_message_echoes", "message_echoes", with("to", person[1:], "biz_opaque_callback_data", "a.0.b")), nil},
		"what we sent ourselves":   {event("message_echoes", "message_echoes", with("to", person[1:])), nil},
		"an answered conversation": {event("standby", "messages", with()), nil},
		"messages in echoes":       {event("smb_message_echoes", "messages", with()), nil},
		"echoes in messages":       {event("messages", "message_echoes", with("to", person[1:])), nil},
		"history":                  {event("history", "history", object{"threads": []any{object{"id": person[1:], "messages": []any{typed}}}}), nil},
		"history as messages":      {event("history", "messages", with()), nil},
		"the contacts of the app":  {event("smb_app_state_sync", "state_sync", object{"type": "contact", "contact": object{"phone_number": person[1:]}}), nil},
	} {
		w.deliver(test.body)
		got := h.next()
		if len(got) != len(test.want) {
			t.Errorf("%s: told %+v", name, got)
			continue
		}
		for i := range got {
			want := test.want[i]
			want.Client, want.Session, want.At = w.c.ID, w.session, at.Truncate(time.Second)
			if got[i] != want {
				t.Errorf("%s: told %+v, want %+v", name, got[i], want)
			}
		}
	}
}
