package sendapp_test

import (
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/connector/sendapp/gatewaytest"
	"puntuale/internal/store/storetest"
)

// TestAnswers checks what each answer of the family proves. Kind 0 means that the outcome is uncertain.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const uncertain, sent = puntuale.SendErrorKind(0), puntuale.SendErrorKind(-1)
	for name, test := range map[string]struct {
		reply  gatewaytest.Reply
		kind   puntuale.SendErrorKind
		online bool // whether the session must be online after the answer
	}{
		"sent":                     {gatewaytest.Reply{}, sent, true},
		"bare success":             {gatewaytest.Reply{Bare: true}, uncertain, true},
		"success with other words": {gatewaytest.Reply{Text: "Message queued"}, uncertain, true},
		"quota":                    {gatewaytest.Reply{Text: "Your account has exceeded the maximum limit of messages"}, puntuale.Throttled, false},
		"quota as an error":        {gatewaytest.Reply{Refuse: "You have exceeded the maximum limit"}, puntuale.Throttled, false},
		"plan expired":             {gatewaytest.Reply{Text: "Your plan has expired"}, puntuale.Throttled, false},
		"token":                    {gatewaytest.Reply{Refuse: "Access token does not exist"}, puntuale.SessionDown, true},
		"instance":                 {gatewaytest.Reply{Refuse: "The Instance ID provided has been invalidated"}, puntuale.SessionDown, true},
		"relogin":                  {gatewaytest.Reply{Refuse: "This WhatsApp account relogin required"}, puntuale.SessionDown, true},
		"never linked":             {gatewaytest.Reply{Refuse: "This instance ID has not been activated yet"}, puntuale.SessionDown, true},
		"recipient":                {gatewaytest.Reply{Refuse: "Phone number is required"}, puntuale.Final, true},
		"empty":                    {gatewaytest.Reply{Refuse: "Please enter media url or message"}, puntuale.Final, true},
		"other words":              {gatewaytest.Reply{Refuse: "Error"}, uncertain, true},
		"translated":               {gatewaytest.Reply{Refuse: "Token di accesso non valido"}, uncertain, true},
		"empty list":               {gatewaytest.Reply{Body: "[]", Sends: true}, uncertain, true},
		"no JSON":                  {gatewaytest.Reply{Body: "<html>", Sends: true}, uncertain, true},
		"a proxy's page":           {gatewaytest.Reply{Body: "<html>", Status: 502}, uncertain, true},
		"a redirect":               {gatewaytest.Reply{Body: "{}", Status: 307}, uncertain, true},
		"success by a proxy":       {gatewaytest.Reply{Body: `{"status":"success","message":{"key":{"id":"x"}}}`, Status: 504}, uncertain, true},
		"lost":                     {gatewaytest.Reply{Drop: true}, uncertain, true},
		"broken off":               {gatewaytest.Reply{Break: true}, uncertain, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := linked(t, storetest.SQLite)
			w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply { return test.reply })
			receipt, err := w.send(person, text("ciao"))
			got := sent
			if e := puntuale.AsSendError(err); e != nil {
				if got = e.Kind; e.Reason.IsZero() {
					t.Error("the refusal has no reason to show to people")
				}
			} else if err != nil {
				got = uncertain
			}
			if got != test.kind {
				t.Errorf("%q, %v: kind %d, want %d", receipt.Detail, err, got, test.kind)
			}
			if err != nil && strings.Contains(err.Error(), gatewaytest.Token) {
				t.Errorf("the error tells the token: %v", err)
			}
			if got == sent && catalogue.Italian.Sentence(receipt.Detail) != w.lastSent().ID {
				t.Errorf("the receipt says %q, want %q", receipt.Detail, w.lastSent().ID)
			}
			w.until("as expected after a look", func() bool { return w.conn.Online(w.session) == test.online })
		})
	}
}

// If a gateway cannot be reached, it did not get the message. If a gateway got the request but its answer does not show
// the outcome, it may have sent the message.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	k := w.keys("65F0AAAAAAAAA")
	k.BaseURL = "http://127.0.0.1:1/api"
	away := w.open(k)
	if w.conn.Online(away) || w.last(away).Detail.IsZero() {
		t.Errorf("a session whose gateway is not there: %+v", w.last(away))
	}
	w.peer.Down(true)
	if _, err := w.send(person, text("ciao")); err == nil || puntuale.AsSendError(err) != nil {
		t.Errorf("a page of a proxy: %v, want an outcome that nobody knows", err)
	}
	w.until("messages wait", func() bool { return !w.conn.Online(w.session) })
	if r := w.last(w.session); r.State != puntuale.LinkLinked || r.Number != "+"+own {
		t.Errorf("%+v, want linked, with the number", r)
	}
	w.peer.Down(false)
	w.later(time.Minute, "online again", func() bool { return w.conn.Online(w.session) })
}

// TestSpin: gateways choose a or b from {a|b}. So the connector replaces each bar between braces by a similar
// character, and nothing of a text is lost.
func TestSpin(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	for in, want := range map[string]string{
		"Ciao {Ada|Bea}, a | b":     "Ciao {AdaǀBea}, a | b",
		"{{a|b}|c} | {":             "{{aǀb}ǀc} | {",
		"a | b":                     "a | b",
		"{a} | {b}":                 "{a} | {b}",
		"{senza fine | ":            "{senza fine | ",
		"{\"chiave\": 1, \"o\": 2}": "{\"chiave\": 1, \"o\": 2}",
	} {
		if _, err := w.send(person, text(in)); err != nil {
			t.Fatal(err)
		}
		if got := w.lastSent().Text; got != want {
			t.Errorf("%q arrived as %q, want %q", in, got, want)
		}
	}
}

func TestLocation(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	if _, err := w.send(person, puntuale.Content{Latitude: new(45.4642), Longitude: new(-9.19)}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.lastSent().Text, "https://maps.google.com/?q=45.4642,-9.19"; got != want {
		t.Errorf("the location is %q, want %q", got, want)
	}
}

// TestRecipients: messages are sent to numbers and groups. Other recipients, and files that may not be fetched, are
// refused before anything is sent.
func TestRecipients(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	if _, err := w.send("393331234567-1420@g.us", text("al gruppo")); err != nil || w.lastSent().To != "393331234567-1420@g.us" {
		t.Errorf("group: %v, %+v", err, w.lastSent())
	}
	for _, to := range []string{"123456789@lid", "AbCdEfGhIjKlMnOpQrStUv"} {
		if _, err := w.send(to, text("no")); puntuale.AsSendError(err) == nil || puntuale.AsSendError(err).Kind != puntuale.Final {
			t.Errorf("%s: %v, want a final refusal", to, err)
		}
	}
	if _, err := w.send(person, puntuale.Content{Text: "ciao", Official: &puntuale.Approved{Name: "saluto"}}); puntuale.AsSendError(err) == nil || puntuale.AsSendError(err).Kind != puntuale.Final {
		t.Errorf("a template of Meta's: %v, want a final refusal", err)
	}
	if _, err := w.send(person, puntuale.Content{MediaURL: forbidden}); puntuale.AsSendError(err) == nil {
		t.Errorf("a forbidden address: %v", err)
	}
	if n := len(w.peer.Sent()); n != 1 {
		t.Errorf("%d messages left, want 1", n)
	}
}

// TestFileNotReadable: a message waits while the storage does not return its file, and says why. The gateway, which would send
// it without the file, hears nothing of it.
func TestFileNotReadable(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	_, err := w.send(person, puntuale.Content{Text: "ciao", MediaURL: away})
	if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Transient || e.Reason.Code != puntuale.ReasonNotUploaded || e.Detail.Code != "file.storage_away" {
		t.Errorf("a file whose storage does not answer: %v", err)
	}
	if all := w.peer.Sent(); len(all) != 0 {
		t.Errorf("%d messages left", len(all))
	}
}

// The gateway refuses a repeat. The message stays uncertain, because the earlier attempt may have arrived.
func TestRefusedRepeatIsUnknown(t *testing.T) {
	t.Parallel()
	w := linked(t, storetest.SQLite)
	e := w.envelope(person, text("ciao"))
	e.Repeat = true
	w.peer.Answer(func(gatewaytest.Sent) gatewaytest.Reply { return gatewaytest.Reply{Refuse: "Recipient is required"} })
	p, err := w.conn.Prepare(w.within(), e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.conn.Send(w.within(), p); err == nil || puntuale.AsSendError(err) != nil {
		t.Errorf("%v, want an outcome that nobody knows", err)
	}
}
