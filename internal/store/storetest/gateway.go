package storetest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"puntuale"
)

// MustGateway creates a session of type SendApp. mark is the keyed hash of its number. Its sealed keys are the bytes
// "keys of <id>".
func (c *Client) MustGateway(mark string) puntuale.SessionID {
	c.w.t.Helper()
	id, err := c.createGateway(mark)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return id
}

func (c *Client) createGateway(mark string) (puntuale.SessionID, error) {
	return c.CreateGateway(context.Background(), puntuale.Session{Name: "gateway", Type: puntuale.SendApp, Created: Begin}, mark,
		func(id puntuale.SessionID) []byte { return []byte("keys of " + id.String()) }, nil)
}

// becomes returns a change that replaces all keys and the mark.
func becomes(sealed, mark string) puntuale.KeyChange {
	return func([]byte) ([]byte, string, error) { return []byte(sealed), mark, nil }
}

// testGatewayKeys checks that a gateway's sealed keys belong to one session. Two sessions cannot have the same number
// at the gateway.
func testGatewayKeys(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	first, second := c.MustGateway("one"), other.MustGateway("")
	has := func(id puntuale.SessionID, owner *Client, want string) {
		t.Helper()
		client, sealed, err := w.SealedGateway(ctx, id)
		if err != nil || client != owner.ID || !bytes.Equal(sealed, []byte(want)) {
			t.Errorf("session %d of client %d: %q, %v, want %q", id, client, sealed, err, want)
		}
	}
	has(first, c, "keys of "+first.String())
	WantCode(t, w.ChangeGateway(ctx, second, becomes("stolen", "one")), puntuale.CodeConflict)
	has(second, other, "keys of "+second.String())
	_, err := other.createGateway("one")
	WantCode(t, err, puntuale.CodeConflict)
	if err := w.ChangeGateway(ctx, first, becomes("later", "")); err != nil { // from now on, another session may have the number
		t.Fatal(err)
	}
	has(first, c, "later")
	if err := w.ChangeGateway(ctx, second, becomes("taken", "one")); err != nil {
		t.Fatal(err)
	}
	for _, none := range []puntuale.SessionID{c.Session, c.MustOfficial(false), 987654} {
		_, _, err := w.SealedGateway(ctx, none)
		WantCode(t, err, puntuale.CodeNotFound)
		WantCode(t, w.ChangeGateway(ctx, none, becomes("x", "")), puntuale.CodeNotFound)
	}
	if err := other.DeleteSession(ctx, second, false, 0, Begin); err != nil {
		t.Fatal(err)
	}
	if err := w.ChangeGateway(ctx, first, becomes("free", "one")); err != nil { // works, because the session that had this number was deleted
		t.Fatal(err)
	}
}

// testNetworkIDs stores a network's message id for several messages. The id must always lead to the first of these
// messages. Ids belong to a session. They must be deleted with the session, or after their retention.
func testNetworkIDs(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	id := c.MustGateway("")
	n := puntuale.NetworkID{MessageRef: puntuale.MessageRef{Client: c.ID, ID: 7}, Session: id, ID: "3EB0", Token: 9, At: Begin}
	twin := n
	twin.MessageRef.ID, twin.Token = 8, 10
	for _, x := range []puntuale.NetworkID{n, n, twin} {
		if err := w.KeepNetworkID(ctx, c.ID, x); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := w.NetworkIDs(ctx, c.ID, id, []string{"3EB0", "unknown"}); err != nil || len(all) != 1 || all["3EB0"] != n {
		t.Errorf("%+v, %v, want %+v", all, err, n)
	}
	if all, err := w.NetworkIDs(ctx, other.ID, id, []string{"3EB0"}); err != nil || len(all) != 0 {
		t.Errorf("another client finds %+v, %v", all, err)
	}
	if err := w.Maintain(ctx, Begin.Add(29*24*time.Hour), time.Time{}); err != nil || w.Int("select count(*) from network_id") != 1 {
		t.Errorf("forgotten too early: %v", err)
	}
	if err := w.Maintain(ctx, Begin.Add(31*24*time.Hour), time.Time{}); err != nil || w.Int("select count(*) from network_id") != 0 {
		t.Errorf("never forgotten: %v", err)
	}
	if err := w.KeepNetworkID(ctx, c.ID, n); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteSession(ctx, id, false, 0, Begin); err != nil || w.Int("select count(*) from network_id") != 0 {
		t.Errorf("still there after the session: %v", err)
	}
}

// testOpenAttempts checks the list of attempts without an outcome, of one session and to one recipient. The list must
// include the contents of the messages.
func testOpenAttempts(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 3)
	token, _ := w.MustClaim(node, Begin, c.Items(phone, 0, ids[0], ids[1])...)
	w.MustRecord(Begin, c.Items(phone, 0, ids[1])[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
	open, err := w.OpenAttempts(ctx, c.ID, c.Session, phone, Begin.Add(-time.Minute))
	if err != nil || len(open) != 1 || open[0].ID != ids[0] || open[0].Token != token || !open[0].Begun.Equal(Begin) || open[0].Content.Text != "testo 0" {
		t.Errorf("%+v, %v", open, err)
	}
	for name, none := range map[string]func() ([]puntuale.OpenAttempt, error){
		"another recipient": func() ([]puntuale.OpenAttempt, error) {
			return w.OpenAttempts(ctx, c.ID, c.Session, "+393339999999", Begin.Add(-time.Minute))
		},
		"another session": func() ([]puntuale.OpenAttempt, error) {
			return w.OpenAttempts(ctx, c.ID, c.Session+1, phone, Begin.Add(-time.Minute))
		},
		"another client": func() ([]puntuale.OpenAttempt, error) {
			return w.OpenAttempts(ctx, c.ID+1, c.Session, phone, Begin.Add(-time.Minute))
		},
		"too long ago": func() ([]puntuale.OpenAttempt, error) { return w.OpenAttempts(ctx, c.ID, c.Session, phone, Begin) },
	} {
		if open, err := none(); err != nil || len(open) != 0 {
			t.Errorf("%s: %+v, %v", name, open, err)
		}
	}
}

// testGatewayHealth checks both parts of a gateway's health. One is how many messages were sent after the last
// confirmed message. The other is the latest failure for the given reason.
func testGatewayHealth(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 5)
	at := func(i int) time.Time { return Begin.Add(time.Duration(i) * time.Minute) }
	for i, id := range ids[:4] {
		c.MustSend(node, at(i), id)
	}
	limited := puntuale.Because("limited")
	c.MustEnd(node, at(4), puntuale.Outcome{Verdict: puntuale.Refused, Reason: limited}, ids[4])
	ask := func(to time.Time, limit int) puntuale.GatewayHealth {
		t.Helper()
		h, err := w.GatewayHealth(ctx, c.ID, c.Session, Begin.Add(-time.Hour), to, limit, limited, "Limitato")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := ask(at(9), 20); h.Unconfirmed != 4 || !h.Failed.Equal(at(4)) {
		t.Errorf("%+v, want 4 unconfirmed", h)
	}
	if h := ask(at(9), 2); h.Unconfirmed != 2 {
		t.Errorf("%+v, want no more than 2", h)
	}
	if _, err := w.KeepReceipts(ctx, at(5), []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: c.ID, ID: ids[2]}, Session: c.Session, Kind: puntuale.ReceiptDelivered, At: at(5)}}); err != nil {
		t.Fatal(err)
	}
	if h := ask(at(9), 20); h.Unconfirmed != 1 {
		t.Errorf("%+v, want 1 unconfirmed", h)
	}
	if h := ask(at(3), 20); h.Unconfirmed != 0 {
		t.Errorf("%+v, want none before the confirmed one", h)
	}
	// An earlier version stored the reason in this form.
	c.MustEnd(node, at(6), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Limitato")}, c.MustStart(phone, Begin, 1)...)
	if h := ask(at(9), 20); !h.Failed.Equal(at(6)) {
		t.Errorf("%+v, want the failure at %v", h, at(6))
	}
}

// chatwoot links the client's default session with an inbox of Chatwoot.
func (c *Client) chatwoot() puntuale.ChatwootLink {
	c.w.t.Helper()
	l, err := c.LinkChatwoot(context.Background(), puntuale.ChatwootLink{
		Webhook: puntuale.Webhook{URL: "https://chat.example", Session: c.Session, Created: Begin}, Chatwoot: puntuale.ChatwootInbox{Account: 3},
	}, []byte("sealed"), Begin)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return l
}
