package sendapp_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/store/storetest"
)

func (w *world) state(f flying, want puntuale.State) puntuale.MessageDetail {
	w.t.Helper()
	d := w.c.Detail(f.id)
	if d.State != want {
		w.t.Errorf("message %d is %v (%q), want %v", f.id, d.State, d.Detail, want)
	}
	return d
}

// TestEcho: after a lost answer the message is uncertain. An echo with the same chat and text proves that the message
// was sent. But the echo must come soon after the attempt, and must fit no other attempt. If the answer came, an echo
// with the answer's id proves this, too. No other echo is a proof.
func TestEcho(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := linked(t, d)
		cases := 0
		for name, test := range map[string]struct {
			change  func(*gatewaytest.Sent)
			at      time.Duration // the time of the echo, counted from the attempt
			twin    bool          // a second attempt with the same text is open
			answers bool          // the gateway's answer came, but this node stopped before it stored the outcome
			settles bool
		}{
			"the echo":         {settles: true},
			"an answer":        {answers: true, settles: true},
			"an answered text": {answers: true, change: func(s *gatewaytest.Sent) { s.Text += "!" }, settles: true},
			"another text":     {change: func(s *gatewaytest.Sent) { s.Text += "!" }},
			"another chat":     {change: func(s *gatewaytest.Sent) { s.To = "393330000000" }},
			"a file":           {change: func(s *gatewaytest.Sent) { s.Media = "x.jpg" }},
			"before it":        {at: -time.Minute},
			"long after it":    {at: 11 * time.Minute},
			"two could be it":  {twin: true},
			"an empty id":      {change: func(s *gatewaytest.Sent) { s.ID = "" }},
			"a hostile chat":   {change: func(s *gatewaytest.Sent) { s.To = "1' or 1=1 --" }},
			"an endless id":    {change: func(s *gatewaytest.Sent) { s.ID = strings.Repeat("A", 4096) }, settles: true},
			"an id with a NUL": {change: func(s *gatewaytest.Sent) { s.ID = "3EB0\x00" }, settles: true},
		} {
			t.Run(name, func(t *testing.T) {
				w.t = t
				cases++
				person := number(cases)
				w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply { return gatewaytest.Reply{Drop: !test.answers} })
				w.until("looked at", func() bool { return w.conn.Online(w.session) })
				f := w.fly(person, "Ciao {a|b}")
				if !test.answers {
					w.record(f)
				}
				w.state(f, puntuale.Pending)
				s := w.lastSent()
				at := w.clock.Now().Add(test.at)
				if test.twin {
					w.record(w.fly(person, "Ciao {a|b}"))
				}
				if test.change != nil {
					test.change(&s)
				}
				w.clock.Advance(max(test.at, 0))
				for range 2 {
					w.report("messages.upsert", gatewaytest.Echo(s, at))
				}
				if test.settles {
					w.state(f, puntuale.Completed)
				} else {
					w.state(f, puntuale.Pending)
				}
			})
		}
	})
}

// TestEarly: an echo and an ack may come before the answer.
func TestEarly(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	acked := make(chan int, 1)
	w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply {
		return gatewaytest.Reply{Early: func(s gatewaytest.Sent) {
			go func() {
				acked <- w.peer.Report(w.peer.Webhook(own), w.instance(), "messages.update", gatewaytest.Ack(s, 3))
			}()
		}}
	})
	f := w.fly(person, "prima l'ack")
	w.later(time.Second, "the ack was answered", func() bool { return len(acked) > 0 })
	if d := w.state(f, puntuale.Completed); d.Delivered.IsZero() {
		t.Errorf("%+v, want it delivered", d)
	}
	w.record(f)
	w.state(f, puntuale.Completed)

	w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply {
		return gatewaytest.Reply{Early: func(s gatewaytest.Sent) { w.report("messages.upsert", gatewaytest.Echo(s, w.clock.Now())) }}
	})
	f = w.fly(person, "prima l'eco")
	w.state(f, puntuale.Completed)
	w.record(f)
	w.state(f, puntuale.Completed)
}

// TestAcks: acks come in any order, more than once, and with unknown ids. A failure changes the outcome of a sent
// message, but not the outcome of a delivered message.
func TestAcks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d storetest.Driver) {
		w := linked(t, d)
		f := w.fly(person, "uno")
		w.record(f)
		for _, status := range []int{4, 2, 1, 3, 3, 0} {
			w.report("messages.update", gatewaytest.Ack(w.lastSent(), status))
		}
		if d := w.state(f, puntuale.Completed); d.Read.IsZero() || d.Delivered.IsZero() {
			t.Errorf("%+v, want it delivered and read", d)
		}
		w.report("messages.update", gatewaytest.Ack(gatewaytest.Sent{ID: "3EB0FFFF", To: "393330000000"}, 3))
		g := w.fly(person, "due")
		w.record(g)
		w.report("messages.update", gatewaytest.Ack(w.lastSent(), 0, "463"))
		if d := w.state(g, puntuale.Failed); d.Reason.IsZero() || !strings.Contains(catalogue.Italian.Sentence(d.Detail), "463") {
			t.Errorf("%q %q", d.Reason, d.Detail)
		}
		w.later(time.Minute, "the number rests", func() bool { return !w.conn.Online(w.session) })
		w.later(10*time.Minute, "and goes on", func() bool { return w.conn.Online(w.session) })
	})
}

// TestReplies: a person's message opens the person's window, even if the chat hides the number. A message in a group
// opens no window.
func TestReplies(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	heard := func(phone string) bool {
		return w.w.Int("select count(*) from contact where phone = '"+phone+"' and window_until > 0") > 0
	}
	at := w.clock.Now()
	w.report("messages.upsert", gatewaytest.Wrote("A1", "393331111111", "ciao", false, at))
	w.report("messages.upsert", gatewaytest.Wrote("A2", "393332222222", "ciao", true, at))
	for _, phone := range []string{"+393331111111", "+393332222222"} {
		if !heard(phone) {
			t.Errorf("%s was not heard", phone)
		}
	}
	w.report("messages.upsert", gatewaytest.Wrote("A3", "123456-789@g.us", "ciao", false, at))
	if n := w.w.Int("select count(*) from contact where window_until > 0"); n != 3 { // of a hidden person, the window is open under both names
		t.Errorf("%d were heard, want 3", n)
	}
}

// TestHostileWebhooks: every address except the secret one gets 404. No content at the secret address does any damage.
func TestHostileWebhooks(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	right := w.peer.Webhook(own)
	hook := right[strings.LastIndex(right, "/")+1:]
	f := w.fly(person, "uno")
	w.record(f)
	ack := gatewaytest.Ack(w.lastSent(), 3)
	for _, wrong := range []string{
		right + "0", right[:len(right)-1], strings.TrimSuffix(right, hook), strings.TrimSuffix(right, hook) + strings.Repeat("0", len(hook)),
		w.hooks.URL + puntuale.GatewayWebhooks + "999999/" + hook, w.hooks.URL + puntuale.GatewayWebhooks + "x/" + hook, w.hooks.URL + puntuale.GatewayWebhooks,
		w.hooks.URL + puntuale.SessionID(999999).GatewayWebhookPath(w.vault.Mark),
	} {
		if status := w.peer.Report(wrong, w.instance(), "messages.update", ack); status != http.StatusNotFound {
			t.Errorf("%s answered %d", wrong, status)
		}
	}
	if status := w.peer.Report(right, "65F0BBBBBBBBB", "messages.update", ack); status != http.StatusOK {
		t.Errorf("another instance: %d", status)
	}
	for _, odd := range []string{"", "[]", "{", "null", `{"instance_id":"` + w.instance() + `"}`, `{"instance_id":"` + w.instance() + `","event":"messages.update","data":{}}`,
		`{"instance_id":"` + w.instance() + `","event":"messages.upsert","data":{"messages":[{},{"key":{"fromMe":true}},null]}}`} {
		if status := w.peer.Post(right, []byte(odd)); status != http.StatusOK {
			t.Errorf("%q: %d", odd, status)
		}
	}
	if status := w.peer.Post(right, bytes.Repeat([]byte("x"), 2<<20)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes: %d", status)
	}
	if d := w.state(f, puntuale.Completed); !d.Delivered.IsZero() {
		t.Error("a forged ack had an effect")
	}
	// After the session is deleted, its webhook's address gets 404.
	w.conn.Close(w.within(), w.session)
	if err := w.c.DeleteSession(context.Background(), w.session, false, 0, w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if status := w.peer.Post(right, []byte("{}")); status != http.StatusNotFound {
		t.Errorf("of a deleted session: %d", status)
	}
}
