package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// receipt returns a receipt for an attempt on the client's default session.
func (c *Client) receipt(item puntuale.ClaimItem, token int64, k puntuale.ReceiptKind, at time.Time) puntuale.DeliveryReceipt {
	e := puntuale.DeliveryReceipt{MessageRef: item.MessageRef, Session: c.Session, Token: token, Kind: k, At: at, Detail: puntuale.Quoted("wamid.1")}
	if k == puntuale.ReceiptFailed {
		e.Reason, e.Detail = puntuale.Quoted("Il destinatario non riceve su WhatsApp"), puntuale.Quoted("Meta 131026 wamid.1")
	}
	return e
}

func (w *World) mustKeep(now time.Time, all ...puntuale.DeliveryReceipt) (unknown int) {
	w.t.Helper()
	unknown, err := w.KeepReceipts(context.Background(), now, all)
	if err != nil {
		w.t.Fatalf("keep evidence: %v", err)
	}
	return unknown
}

// permutations returns the kinds in all orders.
func permutations(kinds []puntuale.ReceiptKind) (all [][]puntuale.ReceiptKind) {
	if len(kinds) == 0 {
		return [][]puntuale.ReceiptKind{nil}
	}
	for i, k := range kinds {
		rest := append(slices.Clone(kinds[:i]), kinds[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]puntuale.ReceiptKind{k}, p...))
		}
	}
	return all
}

// testReceiptsAnyOrder checks that receipts of a message give the same result in any order, even if each is reported
// twice. A delivery must win over a failure. A failure gives the credit back, and a delivery takes a credit again. The
// number of credits must also not depend on the order.
func testReceiptsAnyOrder(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.Credits = new(int64(1000)) })
	node := w.MustJoin()
	serial := 0
	spent := int64(0)
	for _, kinds := range [][]puntuale.ReceiptKind{
		{puntuale.ReceiptSent},
		{puntuale.ReceiptFailed},
		{puntuale.ReceiptSent, puntuale.ReceiptFailed},
		{puntuale.ReceiptSent, puntuale.ReceiptDelivered, puntuale.ReceiptRead},
		{puntuale.ReceiptSent, puntuale.ReceiptDelivered, puntuale.ReceiptFailed},
		{puntuale.ReceiptFailed, puntuale.ReceiptRead},
	} {
		want, delivered := puntuale.Completed, slices.Contains(kinds, puntuale.ReceiptDelivered)
		if kinds[len(kinds)-1] == puntuale.ReceiptFailed && !delivered {
			want = puntuale.Failed
		}
		for _, order := range permutations(kinds) {
			for _, start := range []string{"in flight", "accepted", "uncertain"} {
				serial++
				item, token := c.attempt(node, fmt.Sprintf("+39333%07d", serial))
				now := Begin.Add(time.Second)
				switch start {
				case "accepted":
					w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid.1")})
				case "uncertain":
					w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: now.Add(24 * time.Hour)})
				}
				for _, k := range slices.Concat(order, order) {
					now = now.Add(time.Second)
					w.mustKeep(now, c.receipt(item, token, k, Begin.Add(time.Duration(k)*time.Second)))
				}
				if start == "in flight" { // the outcome of the attempt is recorded last
					w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid.1")})
				}
				d := c.Detail(item.ID)
				if want == puntuale.Completed {
					spent++
				}
				if d.State != want || c.credits() != 1000-spent || d.Delivered.IsZero() == delivered ||
					d.Read.IsZero() == slices.Contains(kinds, puntuale.ReceiptRead) ||
					d.Departed.IsZero() == slices.Contains(kinds, puntuale.ReceiptSent) || d.GivenUp.IsZero() == slices.Contains(kinds, puntuale.ReceiptFailed) || d.Detail.IsZero() {
					t.Fatalf("%s, %v: %v %q %q, delivered %v, read %v, %d credits, want %v and %d", start, order, d.State, d.Response(), d.Detail, d.Delivered, d.Read,
						c.credits(), want, 1000-spent)
				}
				if want == puntuale.Failed && d.Response().String() != "Il destinatario non riceve su WhatsApp" {
					t.Fatalf("%s, %v: %s", start, order, d.Response())
				}
			}
		}
	}
	if ledger := w.Int("select sum(amount) from credit_entry where client_id = $1", c.ID); ledger != c.credits() {
		t.Errorf("the ledger says %d, %d credits", ledger, c.credits())
	}
}

// testReceiptLeavesAlone checks receipts that must have no effect. Their message does not exist, was cancelled, or
// belongs to another client or session. A failure of an earlier attempt has no effect, either. But a failure of the
// present attempt makes the message FAILED, unless the message was delivered before.
func testReceiptLeavesAlone(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	item, token := c.attempt(node, phone)
	now := Begin.Add(time.Second)

	foreign := c.receipt(item, token, puntuale.ReceiptFailed, now)
	foreign.Client = other.ID
	elsewhere := c.receipt(item, token, puntuale.ReceiptFailed, now)
	elsewhere.Session = other.Session
	nothing := c.receipt(item, token, puntuale.ReceiptRead, now)
	nothing.ID = 1
	if n := w.mustKeep(now, foreign, elsewhere, nothing); n != 3 {
		t.Errorf("%d were unknown", n)
	}
	w.mustKeep(now, c.receipt(item, token+1, puntuale.ReceiptFailed, now))
	if d := c.Detail(item.ID); d.Intent != token || d.State != puntuale.Pending {
		t.Errorf("after evidence of others: %+v", d)
	}
	// The message waits for a retry. A failure of its earlier attempt must not count, but a delivery must.
	w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: now.Add(time.Hour)})
	w.mustKeep(now, c.receipt(item, token, puntuale.ReceiptFailed, now))
	if d := c.Detail(item.ID); d.Intent != 0 {
		t.Errorf("open, after a late failure: %+v", d)
	}
	w.mustKeep(now, c.receipt(item, token, puntuale.ReceiptDelivered, now))
	if d := c.Detail(item.ID); d.State != puntuale.Completed || c.credits() != 99 {
		t.Errorf("open, after a delivery: %+v, %d credits", d, c.credits())
	}

	id := c.MustStart("+393330000007", Begin, 1)[0]
	if _, err := c.CancelMessages(ctx, []puntuale.MessageID{id}, Day, now); err != nil {
		t.Fatal(err)
	}
	cancelled := puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: c.ID, ID: id}}
	ours, oursToken := c.attempt(node, "+393330000006")
	w.MustRecord(now, ours, oursToken, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Fuori dalla finestra")})
	for _, k := range []puntuale.ReceiptKind{puntuale.ReceiptSent, puntuale.ReceiptFailed, puntuale.ReceiptRead} {
		if d := c.Detail(ours.ID); d.State != puntuale.Failed || d.Response().String() != "Fuori dalla finestra" {
			t.Errorf("refused, before it was read: %v %s", d.State, d.Response())
		}
		w.mustKeep(now, c.receipt(cancelled, 1, k, now), c.receipt(ours, oursToken, k, now))
	}
	if d := c.Detail(id); d.State != puntuale.Cancelled {
		t.Errorf("cancelled: %+v", d)
	}
	if d := c.Detail(ours.ID); d.State != puntuale.Completed {
		t.Errorf("refused, and read all the same: %v %s", d.State, d.Response())
	}
}

// testReceiptAfterResend resends a message that failed or was given up as uncertain. A late receipt must change the
// outcome of the old message, but not its state.
func testReceiptAfterResend(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	item, token := c.attempt(node, phone)
	now := Begin.Add(time.Second)
	w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Sent})
	w.mustKeep(now, c.receipt(item, token, puntuale.ReceiptFailed, now))
	again := c.MustResend(item.ID)
	later := now.Add(time.Hour)
	w.mustKeep(later, c.receipt(item, token, puntuale.ReceiptDelivered, later))
	if d := c.Detail(item.ID); d.State != puntuale.Rescheduled || d.Delivered.IsZero() {
		t.Errorf("the old one: %+v", d)
	}
	outcomes, _, err := c.Outcomes(context.Background(), Begin, later.Add(time.Hour), puntuale.Page{})
	if err != nil || len(outcomes) != 1 || !outcomes[0].Sent || !outcomes[0].Done.Equal(later) {
		t.Errorf("outcomes: %+v, %v", outcomes, err)
	}
	if d := c.Detail(again[0]); d.State != puntuale.Pending {
		t.Errorf("the new one: %+v", d)
	}
}
