//go:build !nosocket

package whatsapptest_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"puntuale/internal/connector/socket/whatsapptest"
)

func (c *client) try(ctx context.Context, to types.JID, text string) error {
	_, err := c.SendMessage(ctx, to, &waE2E.Message{Conversation: proto.String(text)})
	return err
}

// TestAckErrors refuses messages with the service's error codes.
func TestAckErrors(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna, bruno := net.Phone("393330000002"), net.Account("393330000003")
	shop := linked(t, net, net.Account("393330000001"))
	for _, code := range []int{463, 479, 429, 403} {
		net.Inject(whatsapptest.Fault{To: anna.Number(), AckError: code, Times: 1})
		if err := shop.try(t.Context(), bruno.JID(), "altro"); err != nil {
			t.Errorf("another's message: %v", err)
		}
		if err := shop.try(t.Context(), anna.JID(), "no"); !errors.Is(err, whatsmeow.ErrServerReturnedError) || !strings.HasSuffix(err.Error(), " "+strconv.Itoa(code)) {
			t.Errorf("%d: %v", code, err)
		}
	}
	anna.Await(t, whatsapptest.ID(shop.sendText(anna.JID(), "sì")))
	if shown := anna.Messages(); len(shown) != 1 {
		t.Errorf("the phone shows %+v", shown)
	}
	if sent := net.Messages("393330000001"); len(sent) != 9 || sent[1].Error != 463 || sent[1].Chat != anna.Number() {
		t.Errorf("the server has %+v", sent)
	}
}

// TestAcks delays or drops acks in all ways. The message still arrives, except in the cases "discarded" and "lost".
func TestAcks(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	for name, test := range map[string]struct {
		fault whatsapptest.Fault
		then  func()
		err   bool
		shown bool
	}{
		"dropped":   {whatsapptest.Fault{DropAck: true}, nil, true, true},
		"discarded": {whatsapptest.Fault{Discard: true}, nil, false, false},
		"lost":      {whatsapptest.Fault{Lose: true}, nil, true, false},
		"late":      {whatsapptest.Fault{AckDelay: 20 * time.Millisecond}, nil, false, true},
		"held":      {whatsapptest.Fault{AckHold: hold}, func() { close(hold) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := whatsapptest.New(t)
			anna := net.Phone("393330000002")
			shop := linked(t, net, net.Account("393330000001"))
			remove := net.Inject(test.fault)
			defer remove()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- shop.try(ctx, anna.JID(), "ciao") }()
			net.AwaitMessage(t, "393330000001", func(s whatsapptest.Stanza) bool { return s.Unacked || test.fault.Discard })
			if test.shown {
				anna.Await(t, whatsapptest.Text("ciao"))
			}
			if test.then != nil {
				test.then()
			}
			if test.err {
				cancel()
			}
			if err := <-done; (err != nil) != test.err {
				t.Errorf("sent: %v", err)
			}
			if shown := anna.Messages(); !test.shown && len(shown) != 0 {
				t.Errorf("the phone shows %+v", shown)
			}
		})
	}
}

// TestCutBeforeAck breaks the connection before the ack. The library then sends the message again by itself.
func TestCutBeforeAck(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	shop.sendText(anna.JID(), "prima") // the first message to a person causes a query, which must end before the cut
	net.AwaitToken(t, "393330000001", anna.Number())
	net.Inject(whatsapptest.Fault{Cut: true, Times: 1})
	if err := shop.try(t.Context(), anna.JID(), "ciao"); err != nil {
		t.Fatal(err)
	}
	if m := anna.Await(t, whatsapptest.Text("ciao")); len(net.Messages("393330000001")) != 3 {
		t.Errorf("shown as %+v after %+v", m, net.Messages("393330000001"))
	}
}

// TestCorrupt damages messages. The phone requests them again, and shows each message once.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	account := net.Account("393330000001")
	shop := linked(t, net, account)
	group := net.Group("Clienti", account, anna.Account)
	for i, to := range []types.JID{anna.JID(), anna.JID(), group.JID(), group.JID()} {
		net.Inject(whatsapptest.Fault{Corrupt: true, Times: 1})
		id := shop.sendText(to, "chiaro")
		if m := anna.Await(t, whatsapptest.ID(id)); m.Text != "chiaro" || m.Retries != 1 || m.Copies != 1 || anna.Undecryptable() != i+1 {
			t.Errorf("shown as %+v, %d undecryptable", m, anna.Undecryptable())
		}
	}
	again := net.AwaitMessage(t, account.Number(), func(s whatsapptest.Stanza) bool { return s.Retry })
	if again.Chat != anna.Number() {
		t.Errorf("sent again %+v", again)
	}
}

// TestTimelock forbids an account to write to cold contacts, and reports the end of the time-lock to the account.
func TestTimelock(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	account, warm, cold := net.Account("393330000001"), net.Phone("393330000002"), net.Account("393330000003")
	known := net.Account("393330000004")
	shop := linked(t, net, account)
	if _, err := warm.Send(t.Context(), account.Number(), "quanto costa?"); err != nil {
		t.Fatal(err)
	}
	account.Know(known)
	deadline := time.Now().Add(time.Hour)
	account.Timelock(whatsapptest.Timelock{Until: deadline})
	told := await(shop, 0, func(e *events.NotifyAccountReachoutTimelock) bool { return e.IsActive })
	if told.TimeEnforcementEnds.Unix() != deadline.Unix() {
		t.Errorf("told %+v", told)
	}
	if err := shop.try(t.Context(), cold.JID(), "offerta"); err == nil || !strings.HasSuffix(err.Error(), " 463") {
		t.Errorf("reached out: %v", err)
	}
	for _, to := range []types.JID{warm.JID(), known.JID()} {
		if err := shop.try(t.Context(), to, "dieci"); err != nil {
			t.Errorf("to %s: %v", to, err)
		}
	}
	account.Timelock(whatsapptest.Timelock{})
	await(shop, 0, func(e *events.NotifyAccountReachoutTimelock) bool { return !e.IsActive })
	if err := shop.try(t.Context(), cold.JID(), "offerta"); err != nil {
		t.Errorf("after the time-lock: %v", err)
	}
}

// TestTokens shows that the recipient of a message may answer with a privacy token.
func TestTokens(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	account := net.Account("393330000001")
	shop := linked(t, net, account)
	if _, err := anna.Send(t.Context(), account.Number(), "uno"); err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(m *events.Message) bool { return m.Message.GetConversation() == "uno" })
	net.AwaitToken(t, anna.Number(), account.Number())
	after, err := anna.Send(t.Context(), account.Number(), "e due") // the shop handles this message after the token
	if err != nil {
		t.Fatal(err)
	}
	await(shop, 0, func(m *events.Message) bool { return m.Info.ID == after })
	shop.sendText(anna.JID(), "due")
	if sent := net.Messages(account.Number()); !sent[0].Token {
		t.Errorf("sent %+v", sent)
	}
}

// TestQueries makes queries fail, stay without an answer, and take long.
func TestQueries(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := linked(t, net, net.Account("393330000001"))
	net.InjectQuery(whatsapptest.QueryFault{Group: "usync", Code: 429, Text: "rate-overlimit", Times: 1})
	if _, err := shop.IsOnWhatsApp(t.Context(), []string{"+393330000001"}); !errors.Is(err, whatsmeow.ErrIQRateOverLimit) {
		t.Errorf("asked too often: %v", err)
	}
	net.InjectQuery(whatsapptest.QueryFault{Group: "usync", Delay: 10 * time.Millisecond, Times: 1})
	if found, err := shop.IsOnWhatsApp(t.Context(), []string{"+393330000001"}); err != nil || len(found) != 1 {
		t.Errorf("asked a slow server: %+v, %v", found, err)
	}
	remove := net.InjectQuery(whatsapptest.QueryFault{From: "393330000001", Group: "usync"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := shop.IsOnWhatsApp(ctx, []string{"+393330000001"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asked a silent server: %v", err)
	}
	remove()
	if _, err := shop.IsOnWhatsApp(t.Context(), []string{"+393330000001"}); err != nil {
		t.Error(err)
	}
}

// TestLatency delays the server's stanzas.
func TestLatency(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Account("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	shop.sendText(anna.JID(), "prima")
	net.Latency(40 * time.Millisecond)
	start := time.Now()
	shop.sendText(anna.JID(), "poi")
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("acknowledged after %s", took)
	}
}

// TestMediaFails makes uploads fail.
func TestMediaFails(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	shop := linked(t, net, net.Account("393330000001"))
	net.FailMedia(503, 1)
	if _, err := shop.Upload(t.Context(), []byte("x"), whatsmeow.MediaImage); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("uploaded: %v", err)
	}
	if _, err := shop.Upload(t.Context(), []byte("x"), whatsmeow.MediaImage); err != nil {
		t.Error(err)
	}
}

// TestLostReceipts shows that the server can drop receipts.
func TestLostReceipts(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	anna := net.Phone("393330000002")
	shop := linked(t, net, net.Account("393330000001"))
	remove := net.LoseReceipts(anna.Number(), "")
	first := shop.sendText(anna.JID(), "uno")
	anna.Await(t, whatsapptest.ID(first))
	anna.AwaitSettled(t)
	remove()
	second := shop.sendText(anna.JID(), "due")
	got := await(shop, 0, func(r *events.Receipt) bool { return r.Type == "" })
	if got.MessageIDs[0] != second {
		t.Errorf("the first receipt is for %s", got.MessageIDs[0])
	}
}

// TestStrict shows that each kind of unknown input fails the test.
func TestStrict(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]binary.Node{
		"a stanza":     {Tag: "surprise"},
		"an attribute": {Tag: "presence", Attrs: binary.Attrs{"type": "available", "mood": "good"}},
		"a value":      {Tag: "presence", Attrs: binary.Attrs{"type": "asleep"}},
		"no attribute": {Tag: "presence"},
		"a child":      {Tag: "presence", Attrs: binary.Attrs{"type": "available"}, Content: []binary.Node{{Tag: "why"}}},
		"bytes":        {Tag: "presence", Attrs: binary.Attrs{"type": "available"}, Content: []byte("why")},
		"a query":      {Tag: "iq", Attrs: binary.Attrs{"id": "1", "xmlns": "w:new", "type": "get", "to": types.ServerJID}},
		"an ack":       {Tag: "ack", Attrs: binary.Attrs{"class": "message", "id": "X", "to": number("393330000001")}},
		"an address":   {Tag: "chatstate", Attrs: binary.Attrs{"to": "somebody"}, Content: []binary.Node{{Tag: "composing"}}},
		"an id":        {Tag: "message", Attrs: binary.Attrs{"id": "mine", "type": "text", "to": number("393330000099")}},
		"an identity":  {Tag: "message", Attrs: binary.Attrs{"id": "3EB0AAAAAAAAAAAAAAAAAA", "type": "text", "to": number("393330000099")}, Content: []binary.Node{{Tag: "device-identity", Content: []byte("x")}}},
		"an answer":    {Tag: "iq", Attrs: binary.Attrs{"id": "1", "type": "result", "to": types.ServerJID}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := &judge{T: t}
			net := whatsapptest.New(judge)
			shop := linked(t, net, net.Account("393330000001"))
			//nolint:staticcheck // the test sends what no client should send
			if err := shop.DangerousInternals().SendNode(t.Context(), sent); err != nil {
				t.Fatal(err)
			}
			if _, err := shop.IsOnWhatsApp(t.Context(), []string{"+393330000001"}); err != nil { // once the server answers this query, it has read the stanza
				t.Fatal(err)
			}
			if unknown := net.Unknown(); len(unknown) != 1 {
				t.Errorf("unknown: %q", unknown)
			}
			shop.Disconnect()
			judge.end()
			if judge.errors != 1 {
				t.Errorf("the test would have %d errors", judge.errors)
			}
		})
	}
}

// judge is a test that counts errors instead of failing.
type judge struct {
	*testing.T
	cleanups []func()
	errors   int
}

func (j *judge) Errorf(string, ...any) { j.errors++ }
func (j *judge) Cleanup(f func())      { j.cleanups = append(j.cleanups, f) }

func (j *judge) end() {
	for _, f := range j.cleanups {
		f()
	}
}
