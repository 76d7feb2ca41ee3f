package storetest

import (
	"context"
	"testing"
	"time"

	"puntuale"
)

// uncertainly contains the two stored forms of an uncertain outcome: the code, and the sentence that earlier versions
// wrote.
var uncertainly = map[string]puntuale.Reason{"by its code": puntuale.Because(puntuale.ReasonUncertain), "by the former sentence": puntuale.Quoted(puntuale.FormerUncertain)}

// gaveUp returns a message that was given up as uncertain, and the token of its attempt.
func (c *Client) gaveUp(node puntuale.NodeID, reason puntuale.Reason) (puntuale.ClaimItem, int64) {
	c.w.t.Helper()
	item, token := c.attempt(node, phone)
	if err := c.w.Settle(context.Background(), node, Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed, Reason: reason}}); err != nil {
		c.w.t.Fatal(err)
	}
	return item, token
}

// testFormerUncertain checks rows of messages that an earlier version gave up as uncertain. The store must treat them
// like new rows.
func testFormerUncertain(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	for name, reason := range uncertainly {
		c := w.Client(puntuale.AccountFull)
		item, _ := c.gaveUp(node, reason)
		w.Exec("insert into unknown_message (client_id, message_id, since, at) values ($1, $2, 1, 2)", c.ID, item.ID)
		if all, _, err := c.UnknownMessages(ctx, puntuale.Page{}); err != nil || len(all) != 1 || all[0].Response().Code != puntuale.ReasonUncertain {
			t.Errorf("%s: to decide about: %+v, %v", name, all, err)
		}
		if r, err := c.Restored(ctx); err != nil || r.Unknown != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		item, token := c.gaveUp(node, reason)
		w.mustKeep(Begin.Add(time.Hour), c.receipt(item, token, puntuale.ReceiptSent, Begin))
		if d := c.Detail(item.ID); d.State != puntuale.Completed {
			t.Errorf("%s: the network has it: %+v", name, d.Message)
		}
		item, token = c.gaveUp(node, reason)
		w.MustRecord(Begin.Add(time.Hour), item, token, puntuale.Outcome{Verdict: puntuale.Sent})
		if d := c.Detail(item.ID); d.State != puntuale.Completed {
			t.Errorf("%s: a late answer: %+v", name, d.Message)
		}
		f := w.running(2)
		f.mustFeed(2, Begin)
		due := f.due(Begin)
		f.MustEnd(f.node, Begin, puntuale.Outcome{Verdict: puntuale.Refused, Reason: reason}, due[0].ID)
		f.MustEnd(f.node, Begin, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no")}, due[1].ID)
		for uncertain, want := range map[bool]int{false: 1, true: 2} {
			if failed, err := f.FailedOfCampaign(ctx, f.id, uncertain, 0, 10); err != nil || len(failed) != want {
				t.Errorf("%s: failed of the campaign, uncertain ones %v: %v, %v", name, uncertain, failed, err)
			}
		}
	}
}

// testReasonsComeBack checks that a stored reason is read back unchanged, whatever its text is. A text that looks like
// a code must stay a text.
func testReasonsComeBack(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	for _, r := range []puntuale.Reason{
		puntuale.Because("official.refuses", `a "quoted" word, {1} and 'another'`), puntuale.Because("media.detail", puntuale.Because("media.empty").Stored()),
		puntuale.Quoted(`["uncertain"]`), puntuale.Quoted("\u00e8 così\n<b>\\"),
	} {
		item, token := c.attempt(node, phone)
		w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Refused, Reason: r, Detail: r})
		if d := c.Detail(item.ID); !d.Reason.Equal(r) || !d.Detail.Equal(r) {
			t.Errorf("%#v came back as %#v, %#v", r, d.Reason, d.Detail)
		}
		events, err := c.MessageEvents(ctx, item.ID)
		if err != nil || len(events) != 1 || !events[0].Detail.Equal(puntuale.Colon(r, r)) {
			t.Errorf("%#v: events %+v, %v", r, events, err)
		}
	}
	item, token := c.attempt(node, phone)
	w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("a\x00b\xff"), Detail: puntuale.Because("x", "a\x00b\xff")})
	if d := c.Detail(item.ID); d.Reason.String() != "ab\uFFFD" {
		t.Errorf("what no database takes came back as %q", d.Reason)
	}
}
