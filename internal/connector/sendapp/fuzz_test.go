package sendapp

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"puntuale"
)

// FuzzAnswer: a gateway's answer is a success only if it contains an id.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"status":"success","message":{"key":{"id":"3EB0"}}}`)
	f.Add(`{"status":"success","message":"x","data":{"key":{"id":"3EB0"}}}`)
	f.Add(`{"status":"error","message":"This WhatsApp account relogin required","relogin":true}`)
	f.Add(`{"status":"success","data":{"id":"39333:7@s.whatsapp.net","connected":false}}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := readAnswer([]byte(text))
		if err != nil {
			return
		}
		if err := a.refusal(); err == nil && (a.Status != success || a.sentID() == "") {
			t.Errorf("%q is taken for a success", text)
		}
		if n := numberOf(a.user().ID); n != "" && strings.Trim(n[1:], "0123456789") != "" {
			t.Errorf("%q is taken for a number", n)
		}
	})
}

// FuzzReport: every body that comes to a webhook is either read or ignored.
func FuzzReport(f *testing.F) {
	f.Add(`{"instance_id":"65F0","data":{"event":"messages.upsert","data":{"type":"append","messages":[{"key":{"id":"3EB0","remoteJid":"39333@s.whatsapp.net","fromMe":true},"messageTimestamp":{"low":1},"message":{"conversation":"x"}}]}}}`)
	f.Add(`{"instance_id":"65F0","event":"messages.update","data":[{"key":{"id":"3EB0","fromMe":true},"update":{"status":3,"messageStubParameters":["463"]}}]}`)
	f.Add(`{"instance_id":"65F0","event":"messages.upsert","data":{"messages":[{"key":{"id":"A","remoteJid":"177@lid"},"message":{"ephemeralMessage":{"message":{"documentMessage":{"fileName":"a/b","mediaKey":{"0":1,"1":2},"fileLength":{"low":3},"fileSha256":{"type":"Buffer","data":[1,2]},"directPath":"/v"}}}}}]}}`)
	f.Add(`{"instance_id":"65F0","event":"messages.upsert","data":{"messages":[{"key":{"id":"A","remoteJid":"177@lid"},"message":{"interactiveResponseMessage":{"nativeFlowResponseMessage":{"paramsJson":"{\"id\":\"\\u0000x\"}"},"contextInfo":{"stanzaId":"3EB0\u0000"}}}}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, ok := readReport([]byte(body))
		if !ok {
			return
		}
		for _, m := range r.arrivals().Messages {
			h, _ := m.shown()
			h.ID = m.Key.ID
			h = h.Storable()
			if all := h.Text + h.ID + h.Payload + h.Quoted; !utf8.ValidString(all) || strings.ContainsRune(all, 0) || len(h.Payload) > 256 || len(h.Quoted) > 900 || utf8.RuneCountInString(h.Text) > puntuale.MaxReply {
				t.Errorf("%+v", h)
			}
			if who := m.Key.person(); who != "" && who[0] != '+' && !strings.HasSuffix(who, "@lid") {
				t.Errorf("%q is no person", who)
			}
			if to := m.Key.recipient(); to != "" && to[0] != '+' && !strings.HasSuffix(to, "@g.us") {
				t.Errorf("%q is no recipient", to)
			}
			if at := m.At.Time; at.After(time.Unix(1<<40, 0)) {
				t.Errorf("%v", at)
			}
		}
		_ = r.updates()
	})
}

// FuzzCode: a gateway's picture either contains a code or is refused.
func FuzzCode(f *testing.F) {
	f.Add("data:image/png;base64,iVBORw0KGgo=")
	f.Add("base64,")
	f.Fuzz(func(t *testing.T, address string) {
		if text, err := readCode(address); err == nil && text == "" {
			t.Error("an empty code")
		}
	})
}

// FuzzUnspun: after unspun, a text has no alternatives from which a gateway could choose. Only bars between braces
// change.
func FuzzUnspun(f *testing.F) {
	f.Add("{a|b} | {c{d|e}")
	f.Fuzz(func(t *testing.T, text string) {
		got := unspun(text)
		if strings.ReplaceAll(got, spinBar, "|") != strings.ReplaceAll(text, spinBar, "|") {
			t.Errorf("%q became %q", text, got)
		}
		for begin := range len(got) {
			inside, _, closed := strings.Cut(got[begin+1:], "}")
			if got[begin] == '{' && closed && !strings.Contains(inside, "{") && strings.Contains(inside, "|") {
				t.Errorf("%q is spun in %q", inside, got)
			}
		}
	})
}
