package storetest

import (
	"context"
	"strings"
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

// testBadRun checks that the messages of other runs have their contents if the steps of one run cannot be decoded. The
// bad run's messages count as messages without content, and fail.
func testBadRun(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	refs := make([]puntuale.StepRef, 2)
	for i, to := range []string{phone, "+393330000002"} {
		refs[i].RunRef = puntuale.RunRef{Client: c.ID, ID: c.Detail(c.MustStart(to, Begin, 1)[0]).Run}
	}
	w.Exec("update run set content = '{' where client_id = $1 and id = $2", c.ID, refs[0].ID)
	contents, err := w.Contents(context.Background(), refs)
	if _, bad := contents[refs[0]]; err != nil || bad || contents[refs[1]].Content.Text == "" {
		t.Errorf("%+v, %v", contents, err)
	}
}

// testBadCampaign checks that a node can feed its other campaigns if one campaign cannot be decoded. People can pause
// such a campaign, and its event tells what can be decoded.
func testBadCampaign(t *testing.T, w *World) {
	ctx := context.Background()
	bad := w.running(2)
	if _, err := bad.CreateWebhook(ctx, puntuale.Webhook{URL: "https://example.com", Types: puntuale.AllEvents, Active: true}, []byte("secret"), Begin, nil); err != nil {
		t.Fatal(err)
	}
	good, _ := bad.MustCampaign(2)
	if _, err := bad.StartCampaign(ctx, good, puntuale.CampaignStart{Digest: "d", Session: bad.Session, First: Begin, Day: Day, Now: Begin}); err != nil {
		t.Fatal(err)
	}
	w.Exec("update campaign set draft = '{' where client_id = $1 and id = $2", bad.ID, bad.id)
	all, err := w.FedCampaigns(ctx, bad.node)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i := range all {
		if (all[i].Fault != nil) != (all[i].ID == bad.id) {
			t.Errorf("campaign %d of %d: %v", all[i].ID, good, all[i].Fault)
		}
	}
	bad.change(puntuale.CampaignPaused, Begin.Add(time.Minute), puntuale.CampaignRunning)
	if n := w.Int("select count(*) from outbox_fact where client_id = $1 and type = $2 and subject = $3", bad.ID, int64(puntuale.EventCampaignPaused), bad.id); n != 1 {
		t.Errorf("%d facts about the pause", n)
	}
}

// testBadRuleForReplies checks that a rule which cannot be decoded waits for no word. The reply of an unknown person is
// still stored if another rule waits for it, and so are the replies that came with it.
func testBadRuleForReplies(t *testing.T, w *World) {
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	bad := c.mustRule(c.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}}))
	c.mustRule(c.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"orari"}}))
	other.mustRule(other.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}}))
	w.Exec("update automation set trigger_text = '{' where id = $1", bad.ID)
	says := func(text string) puntuale.TakenMessage {
		return puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Text: text, Phone: "+393330000009"}, Says: func(words []string) bool { return strings.Contains(strings.Join(words, " "), text) }}
	}
	c.mustTake(Begin, c.reply("a", Begin, says("info")), c.reply("b", Begin, says("orari")), other.reply("c", Begin, says("info")))
	if all := c.mustReplies(puntuale.ReplyFilter{}); len(all) != 1 || all[0].Text != "orari" {
		t.Errorf("the client's: %+v", all)
	}
	if all := other.mustReplies(puntuale.ReplyFilter{}); len(all) != 1 {
		t.Errorf("another client's: %+v", all)
	}
}
