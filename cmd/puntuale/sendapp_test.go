package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/sendapp/gatewaytest"
)

// TestGateway runs a server with a gateway session. It links the session through the API, and gets receipts. The answer
// to one send is lost, but the gateway later reports the message. The log must contain neither the secret address nor
// the token.
func TestGateway(t *testing.T) {
	t.Parallel()
	const own, person = "390117654321", "+393331234567"
	peer := gatewaytest.New(t)
	term := newConsole(t, nil)
	term.program.whatsApp = &http.Client{Transport: peer} // it has the files that people send
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data", "--gateway-allow", "127.0.0.0/8", "--public-url", "http://127.0.0.1:1", "--log-level", "debug")
	r := newOfficial(t, graphtest.New(t, graphtest.NewNumber("101")), term, []string{"--data", "data"}, server)
	body := r.must("POST", "/api/sessions", `{"name": "gateway", "connection_type": "Send_app", "pace": {"per_minute": 0, "jitter": 0}, "gateway": {"base_url": "`+peer.URL+`", "access_token": "`+gatewaytest.Token+`"}}`)
	r.session, r.webhook = field(t, body, "id"), r.base+field(t, body, "webhook_path")
	code := field(t, r.must("POST", "/api/sessions/"+r.session+"/pair", `{"method": "qr"}`), "qr")
	peer.Scan(code, own)
	eventually(t, "the session is online", func() bool {
		return strings.Contains(r.must("GET", "/api/sessions/"+r.session, ""), `"state":"online"`)
	})
	if to := peer.Webhook(own); !strings.HasSuffix(to, strings.TrimPrefix(r.webhook, r.base)) {
		t.Errorf("the gateway reports to %q", to)
	}
	instance := peer.Instance(own)
	report := func(event string, payload any) {
		t.Helper()
		if status := peer.Report(r.webhook, instance, event, payload); status != http.StatusOK {
			t.Fatalf("the webhook answered %d", status)
		}
	}
	send := func(text string) string {
		return r.ids("/api/messages", `{"phone": "`+person+`", "text": "`+text+`", "id_sessione": "`+r.session+`"}`)[0]
	}
	first := send("Ciao {a|b}")
	eventually(t, "it is sent", func() bool { state, _ := r.state(first); return state == "COMPLETED" })
	report("messages.update", gatewaytest.Ack(peer.Sent()[0], 3))
	report("messages.update", gatewaytest.Ack(peer.Sent()[0], 4))
	if _, text := r.state(first); !strings.Contains(text, `"consegnato":"`) || !strings.Contains(text, `"letto":"`) {
		t.Errorf("after the acks: %s", text)
	}
	peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply { return gatewaytest.Reply{Drop: true} })
	second := send("perso")
	eventually(t, "its fate is unknown", func() bool { _, text := r.state(second); return strings.Contains(text, "esito incerto") })
	report("messages.upsert", gatewaytest.Echo(peer.Sent()[1], time.Now()))
	if state, text := r.state(second); state != "COMPLETED" {
		t.Errorf("after the echo: %s", text)
	}
	if n := len(peer.Sent()); n != 2 {
		t.Errorf("the gateway sent %d messages, want 2", n)
	}
	r.must("PATCH", "/api/settings", `{"keep_media": true, "keep_replies": "all"}`)
	for id, kept := range map[string]bool{"A1": true, "A2": false} {
		member := peer.Keep("WhatsApp Document Keys", []byte("%PDF-1.7 "+id), map[string]any{"mimetype": "application/pdf", "fileName": "../" + id})
		if !kept {
			member["directPath"], member["url"] = "/nowhere", "https://mmg.whatsapp.net/nowhere"
		}
		report("messages.upsert", gatewaytest.Message(id, strings.TrimPrefix(person, "+")+"@s.whatsapp.net", false, "notify", map[string]any{"documentMessage": member}, time.Now()))
	}
	eventually(t, "one file is kept, and the network does not have the other", func() bool {
		text := r.must("GET", "/api/replies", "")
		return strings.Contains(text, `.pdf"`) && strings.Contains(text, `"file_fault":`) && strings.Contains(r.must("GET", "/api/files", ""), `"name":"A1.pdf"`)
	})
	hook := r.webhook[strings.LastIndex(r.webhook, "/")+1:]
	for name, secret := range map[string]string{"token": gatewaytest.Token, "address": hook} {
		if strings.Contains(server.logged.String(), secret) {
			t.Errorf("the %s stands in the log", name)
		}
	}
}
