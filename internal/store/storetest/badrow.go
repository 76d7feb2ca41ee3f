package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"puntuale"
)

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
