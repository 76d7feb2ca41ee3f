package main

import (
	"net/http"
	"strings"
	"testing"

	"puntuale/internal/chatwoot/chatwoottest"
	"puntuale/internal/connector/official/graphtest"
)

// chatwootRig is a sandbox server whose session is linked to an inbox of Chatwoot.
type chatwootRig struct {
	*officialRig
	peer *chatwoottest.Server
	dir  string // the server's folder
}

func newChatwoot(t *testing.T) *chatwootRig {
	t.Helper()
	peer := chatwoottest.New(t)
	term := newConsole(t, nil)
	const public = "https://puntuale.example"
	server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0", "--data", "data", "--webhook-allow", "127.0.0.0/8", "--public-url", public, "--log-level", "debug")
	r := &chatwootRig{newOfficial(t, graphtest.New(t, graphtest.NewNumber("101")), term, []string{"--data", "data"}, server), peer, term.dir}
	peer.Rewrite(func(address string) string { return r.base + strings.TrimPrefix(address, public) })
	return r
}

func (r *chatwootRig) link() string {
	r.t.Helper()
	return r.must("PUT", "/api/sessions/1/chatwoot", `{"base_url": "`+r.peer.URL+`/", "api_access_token": "`+chatwoottest.Token+`", "account_id": 3}`)
}

// writes simulates that a person writes a message to the sandbox.
func (r *chatwootRig) writes(phone, text string) {
	r.t.Helper()
	r.must("POST", "/api/sandbox/replies", `{"phone": "`+phone+`", "text": "`+text+`"}`)
}

// incoming waits until a person has n messages in Chatwoot, and returns the last of them.
func (r *chatwootRig) incoming(phone string, n int) chatwoottest.Message {
	r.t.Helper()
	eventually(r.t, "a reply is in Chatwoot", func() bool { return len(r.peer.Messages(phone)) >= n })
	return r.peer.Messages(phone)[n-1]
}

// got counts the messages with this text that the phone got from the sandbox.
func (r *chatwootRig) got(phone, text string) (n int) {
	r.t.Helper()
	for _, m := range strings.Split(r.must("GET", "/api/sandbox/messages?limit=1000", ""), `{"message_id"`) {
		if strings.Contains(m, `"`+phone+`"`) && strings.Contains(m, text) {
			n++
		}
	}
	return n
}

// TestChatwoot sends messages between WhatsApp and Chatwoot in both directions. Each message arrives once, although one
// answer is lost and one request is repeated.
func TestChatwoot(t *testing.T) {
	t.Parallel()
	const anna, bruno = "+393331234567", "+393337654321"
	r := newChatwoot(t)
	peer := r.peer
	if status, body := call(t, "PUT", r.base+"/api/sessions/1/chatwoot", r.key, `{"base_url": "`+peer.URL+`", "api_access_token": "no", "account_id": "3"}`); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, "body.api_access_token") {
		t.Errorf("a wrong token: %d %s", status, body)
	}
	if body := r.must("GET", "/api/sessions/1/chatwoot", ""); !strings.Contains(body, `"inbox_id":null`) || !strings.Contains(body, `"active":false`) {
		t.Errorf("a link that is not finished: %s", body)
	}
	first, again := r.link(), r.link()
	if first != again || !strings.Contains(first, `"active":true`) || len(peer.Inboxes()) != 1 {
		t.Errorf("a repeat made something else: %s and %s, %d inboxes", first, again, len(peer.Inboxes()))
	}
	if status, _ := call(t, "PUT", r.base+"/api/sessions/1/chatwoot", r.key, `{"base_url": "`+peer.URL+`", "api_access_token": "no", "account_id": "3"}`); status != http.StatusUnprocessableEntity ||
		r.must("GET", "/api/sessions/1/chatwoot", "") != first {
		t.Errorf("a wrong token stopped a link that works: %d", status)
	}
	if strings.Contains(r.must("GET", "/api/webhooks", ""), peer.URL) {
		t.Error("the link is among the webhooks")
	}

	r.must("POST", "/api/contacts", `{"phone": "`+anna+`", "name": "Anna Rossi"}`)
	r.must("POST", "/api/contacts", `{"phone": "`+bruno+`"}`)
	const carla = "+393471239999" // a call named her, and she is no contact
	r.must("POST", "/api/messages", `{"phone": "`+carla+`", "text": "Ciao {{nome}}", "nome": "Carla Neri"}`)
	r.writes(carla, "Buongiorno")
	r.incoming(carla, 1)
	if name := peer.ContactName(carla); name != "Carla Neri" {
		t.Errorf("the contact's name is %q", name)
	}
	peer.AddContact("Bruno di sempre", bruno)
	r.writes(anna, "Posso spostare?")
	m := r.incoming(anna, 1)
	if m.Text != "Posso spostare?" || m.Kind != "incoming" || m.Private {
		t.Errorf("the first reply is %+v", m)
	}
	talk := m.Conversation
	peer.LoseAnswers(1)
	r.writes(anna, "Domani alle 10")
	r.writes(bruno, "Ciao")
	r.incoming(bruno, 1)
	r.writes(anna, "Grazie")
	eventually(t, "the reply after the lost answer is told", func() bool {
		all := peer.Messages(anna)
		return len(all) > 0 && all[len(all)-1].Text == "Grazie"
	})

	said := peer.Say(talk, "Va bene alle 11?", false)
	peer.Say(talk, "chiedere a Marta", true)
	peer.Repeat(said)
	eventually(t, "the agent's message is sent", func() bool { return r.got(anna, "Va bene alle 11?") == 1 })
	peer.SetPhone(anna, "+393330000000")
	peer.Say(talk, "Alla solita ora", false)
	eventually(t, "the message goes to the person of the conversation", func() bool { return r.got(anna, "Alla solita ora") == 1 })
	peer.SetPhone("+393330000000", anna)
	if n := r.got(anna, "Marta") + r.got("+393330000000", "solita"); n != 0 {
		t.Errorf("%d messages went out that must not", n)
	}
	list := r.must("GET", "/api/messages?phone=%2B393331234567&origin=SINGLE", "")
	if !strings.Contains(list, `"nome_invio":"Chatwoot"`) || strings.Count(list, "Va bene alle 11?") == 0 {
		t.Errorf("the agent's message in the list: %s", list)
	}

	long := peer.Say(talk, strings.Repeat("a", 5000), false)
	if m := peer.Message(long); m.Status != "failed" || !strings.Contains(m.Error, "4096") {
		t.Errorf("an agent's message that is too long is %s %q", m.Status, m.Error)
	}
	r.must("POST", "/api/messages", `{"phone": "`+anna+`", "text": "promemoria"}`)
	eventually(t, "what we send is a note", func() bool {
		all := peer.Messages(anna)
		last := all[len(all)-1]
		return last.Private && strings.Contains(last.Text, "promemoria")
	})
	r.must("POST", "/api/blacklist", `{"phone": "`+bruno+`"}`)
	blocked := peer.Say(peer.Conversations(bruno)[0].ID, "Ciao Bruno", false)
	eventually(t, "the agent sees that the number is blocked", func() bool {
		m := peer.Message(blocked)
		return m.Status == "failed" && m.Error == "Numero in blacklist"
	})

	eventually(t, "the post whose answer was lost is looked for", func() bool { return peer.Looks() > 0 })
	for _, text := range []string{"Posso spostare?", "Domani alle 10", "Grazie"} {
		n := 0
		for _, m := range peer.Messages(anna) {
			if m.Text == text {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q is %d times in Chatwoot", text, n)
		}
	}
	for _, m := range peer.Messages(anna) {
		if strings.Contains(m.Text, "Va bene alle 11?") && m.ID != said {
			t.Errorf("Chatwoot was told its own message: %+v", m)
		}
	}
	peer.Delete(talk)
	r.writes(anna, "Ci siete?")
	eventually(t, "the person has another conversation", func() bool {
		all := peer.Messages(anna)
		last := all[len(all)-1]
		return last.Text == "Ci siete?" && last.Conversation != talk
	})
	if n := len(peer.Conversations(bruno)); n != 1 {
		t.Errorf("a contact that was there has %d conversations", n)
	}

	hook := peer.Inboxes()[0].Webhook
	r.must("DELETE", "/api/sessions/1/chatwoot", "")
	if got, err := http.Post(r.base+strings.TrimPrefix(hook, "https://puntuale.example"), "application/json", strings.NewReader("{}")); err != nil || got.StatusCode != http.StatusNotFound {
		t.Errorf("the webhook of a removed link: %v %v", got, err)
	} else {
		_ = got.Body.Close()
	}
	for name, secret := range map[string]string{"token": chatwoottest.Token, "address": hook[strings.LastIndex(hook, "/")+1:]} {
		if strings.Contains(r.server.logged.String(), secret) {
			t.Errorf("the %s stands in the log", name)
		}
	}
}
