package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"puntuale"
)

func (c *Client) mustEnter(e puntuale.ConsentEntry) puntuale.ConsentResult {
	c.w.t.Helper()
	e.Client, e.Source, e.Entered = c.ID, "reply", Begin.Add(24*time.Hour)
	if e.Mark == "" {
		e.Mark = c.mark(e.Phone)
	}
	r, err := c.w.EnterConsent(context.Background(), e)
	if err != nil {
		c.w.t.Fatalf("enter a consent: %v", err)
	}
	return r
}

func optOut(phone, mark string, change puntuale.ConsentChange, at time.Duration) puntuale.ConsentEntry {
	e := puntuale.ConsentEntry{ReplyMark: mark, Consent: puntuale.Consent{Phone: phone, Purpose: puntuale.PurposeMarketing, Change: change, Words: "Basta!", Message: "wamid." + mark, At: Begin.Add(at)}}
	if change == puntuale.ConsentWithdraw {
		e.Blacklist = puntuale.OptOutReason + "Basta!"
	}
	return e
}

// testOptOut checks that a withdrawal is in the ledger and in the blacklist, and that an undo removes what it added.
// A repeated report changes nothing. A report that is older than the latest is stored, and changes nothing else.
func testOptOut(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	const own = "+393330000001"
	if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: own, Reason: "mia", Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	blocked := func() int { return int(w.Int("select count(*) from blacklist where client_id = $1", c.ID)) }
	for i, step := range []struct {
		change           puntuale.ConsentChange
		at               time.Duration
		mark             string
		applied, changed bool
		entered          puntuale.ConsentChange
		blocked          int
	}{
		{puntuale.ConsentUndo, 0, "0", false, false, 0, 1},
		{puntuale.ConsentWithdraw, 0, "1", true, true, puntuale.ConsentWithdraw, 2},
		{puntuale.ConsentWithdraw, 0, "1", true, true, puntuale.ConsentWithdraw, 2}, // a repeat of the first report
		{puntuale.ConsentWithdraw, time.Minute, "2", true, false, puntuale.ConsentWithdraw, 2},
		{puntuale.ConsentUndo, time.Second, "3", false, false, puntuale.ConsentUndo, 2}, // older than the latest report
		{puntuale.ConsentUndo, time.Hour, "4", true, true, puntuale.ConsentUndo, 1},
		{puntuale.ConsentUndo, 2 * time.Hour, "5", false, false, 0, 1},
		{puntuale.ConsentGrant, 3 * time.Hour, "6", true, true, puntuale.ConsentGrant, 1},
		{puntuale.ConsentWithdraw, 4 * time.Hour, "7", true, true, puntuale.ConsentWithdraw, 2},
		{puntuale.ConsentWithdraw, 5 * time.Hour, "8", true, false, puntuale.ConsentWithdraw, 2},
		{puntuale.ConsentUndo, 6 * time.Hour, "9", true, true, puntuale.ConsentGrant, 1}, // the person had given consent before the withdrawal
	} {
		r := c.mustEnter(optOut(phone, step.mark, step.change, step.at))
		if r.Applied != step.applied || r.Changed != step.changed || r.Change != step.entered || blocked() != step.blocked {
			t.Errorf("step %d: %+v, %d blocked, want %+v", i, r, blocked(), step)
		}
	}
	c.mustEnter(optOut(own, "10", puntuale.ConsentWithdraw, 0))
	c.mustEnter(optOut(own, "11", puntuale.ConsentUndo, time.Hour))
	if n := blocked(); n != 1 {
		t.Errorf("%d blocked: an undo took somebody's own entry", n)
	}
	all, _, err := c.Consents(ctx, phone, c.mark(phone), puntuale.Page{})
	if err != nil || len(all) != 8 || all[0].Words != "Basta!" || all[0].Message != "wamid.1" || all[2].Applied || all[7].Change != puntuale.ConsentGrant {
		t.Errorf("ledger: %+v, %v", all, err)
	}
	if everybody, _, err := c.Consents(ctx, "", "", puntuale.Page{}); err != nil || len(everybody) != 10 || !slices.IsSortedFunc(everybody, func(a, b puntuale.Consent) int { return int(a.ID - b.ID) }) {
		t.Errorf("the whole ledger: %+v, %v", everybody, err)
	}
	if foreign, _, err := other.Consents(ctx, phone, c.mark(phone), puntuale.Page{}); err != nil || len(foreign) != 0 {
		t.Errorf("another client reads %+v, %v", foreign, err)
	}
	states, err := c.ConsentStatuses(ctx, phone, c.mark(phone))
	if st := states[puntuale.PurposeMarketing]; err != nil || st.Change != puntuale.ConsentGrant || !st.At.Equal(Begin.Add(6*time.Hour)) {
		t.Errorf("what holds: %+v, %v", states, err)
	}
}

// startFor starts messages with a purpose.
func (c *Client) startFor(purpose puntuale.Purpose, phone string, due time.Time, n int) []puntuale.MessageID {
	c.w.t.Helper()
	r := c.Run(phone, due, n)
	for i := range r.Messages {
		r.Messages[i].Purpose = purpose
	}
	started, err := c.Start(context.Background(), r)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return started.IDs
}

// testMarketingNeedsConsent checks that people who withdrew consent get no marketing. If the client requires consent,
// the same holds for people who never gave it. Only the confirmation of an opt-out passes the blacklist.
func testMarketingNeedsConsent(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	const silent, agreed, gone, service = "+393330000001", "+393330000002", "+393330000003", "+393330000004"
	rule := puntuale.ConsentFree
	claim := func(want map[puntuale.MessageID]puntuale.ClaimAnswer, phones map[puntuale.MessageID]string) {
		t.Helper()
		items := make([]puntuale.ClaimItem, 0, len(want))
		for id := range want {
			items = append(items, puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: c.ID, ID: id}, Phone: phones[id], Mark: c.mark(phones[id])})
		}
		token, answers := w.MustClaim(w.MustJoin(), Begin.Add(time.Minute), items...)
		for i, it := range items {
			if answers[i] == puntuale.ClaimGranted {
				w.MustRecord(Begin.Add(time.Minute), it, token, puntuale.Outcome{Verdict: puntuale.Sent})
			}
			if answers[i] != want[it.ID] {
				t.Errorf("%s, consent %s: message %d to %s is answered %v, want %v", t.Name(), rule, it.ID, it.Phone, answers[i], want[it.ID])
			}
		}
	}
	c.mustEnter(optOut(agreed, "1", puntuale.ConsentGrant, 0))
	c.mustEnter(optOut(gone, "2", puntuale.ConsentWithdraw, 0))
	withdrawnService := optOut(service, "3", puntuale.ConsentWithdraw, 0)
	withdrawnService.Purpose, withdrawnService.Blacklist = puntuale.PurposeService, ""
	c.mustEnter(withdrawnService)
	for _, rule = range []puntuale.ConsentRule{puntuale.ConsentFree, puntuale.ConsentRequired} {
		if _, err := c.UpdateSettings(ctx, puntuale.SettingsPatch{Consent: &rule}); err != nil {
			t.Fatal(err)
		}
		unasked := puntuale.ClaimGranted
		if rule == puntuale.ConsentRequired {
			unasked = puntuale.ClaimNoConsent
		}
		want, phones := map[puntuale.MessageID]puntuale.ClaimAnswer{}, map[puntuale.MessageID]string{}
		for _, x := range []struct {
			purpose puntuale.Purpose
			phone   string
			want    puntuale.ClaimAnswer
		}{
			{puntuale.PurposeMarketing, silent, unasked},
			{puntuale.PurposeMarketing, agreed, puntuale.ClaimGranted},
			{puntuale.PurposeMarketing, gone, puntuale.ClaimBlacklisted},
			{puntuale.PurposeMarketing, service, puntuale.ClaimNoConsent},
			{puntuale.PurposeService, silent, puntuale.ClaimGranted},
			{puntuale.PurposeService, gone, puntuale.ClaimBlacklisted},
			{puntuale.PurposeService, service, puntuale.ClaimGranted},
			{puntuale.PurposeConfirmation, gone, puntuale.ClaimGranted},
		} {
			id := c.startFor(x.purpose, x.phone, Begin, 1)[0]
			want[id], phones[id] = x.want, x.phone
		}
		claim(want, phones)
		for id, answer := range want {
			if d := c.Detail(id); answer == puntuale.ClaimNoConsent && (d.State != puntuale.Failed || d.Response().Code != puntuale.ReasonNoConsent || d.Attempt != 0) {
				t.Errorf("marketing without consent: %+v", d)
			}
		}
	}
	// This person withdrew and was then erased. Marketing must not reach the person, although the number is not
	// stored.
	if _, err := c.RemoveBlacklisted(ctx, gone, c.mark(gone), Day); err != nil {
		t.Fatal(err)
	}
	c.mustErase(gone, Begin.Add(2*time.Minute))
	rule = puntuale.ConsentFree
	if _, err := c.UpdateSettings(ctx, puntuale.SettingsPatch{Consent: &rule}); err != nil {
		t.Fatal(err)
	}
	late := c.startFor(puntuale.PurposeMarketing, gone, Begin, 1)[0]
	claim(map[puntuale.MessageID]puntuale.ClaimAnswer{late: puntuale.ClaimNoConsent}, map[puntuale.MessageID]string{late: gone})
	all, _, err := c.Consents(ctx, "", "", puntuale.Page{})
	if err != nil || !slices.ContainsFunc(all, func(e puntuale.Consent) bool { return e.Erased && e.Phone == "" && e.Words == "" && e.Message == "" }) {
		t.Errorf("the ledger after an erasure: %+v, %v", all, err)
	}
	if n := w.Int("select count(*) from consent where phone = $1", gone) + w.Int("select count(*) from consent_state where phone = $1", gone); n != 0 {
		t.Errorf("the number stands in %d rows after the erasure", n)
	}
	c.mustEnter(optOut(gone, "9", puntuale.ConsentGrant, 48*time.Hour))
	again := c.startFor(puntuale.PurposeMarketing, gone, Begin, 1)[0]
	claim(map[puntuale.MessageID]puntuale.ClaimAnswer{again: puntuale.ClaimGranted}, map[puntuale.MessageID]string{again: gone})
}

// testCancelMarketing checks that an opt-out cancels pending marketing and no other messages.
func testCancelMarketing(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	due := Begin.Add(time.Hour)
	marketing, service := c.startFor(puntuale.PurposeMarketing, phone, due, 3), c.startFor(puntuale.PurposeService, phone, due, 2)
	elsewhere := c.startFor(puntuale.PurposeMarketing, "+393330000001", due, 1)
	if n, err := w.CancelMarketing(ctx, c.ID, phone, Begin); err != nil || n != 3 {
		t.Errorf("%d cancelled, %v", n, err)
	}
	for i, ids := range [][]puntuale.MessageID{marketing, service, elsewhere} {
		for _, id := range ids {
			if d := c.Detail(id); (d.State == puntuale.Cancelled) != (i == 0) {
				t.Errorf("message %d is %v", id, d.State)
			}
		}
	}
	resent, err := c.Resend(ctx, puntuale.Resend{Day: Day, Now: Begin, Messages: []puntuale.ResendMessage{{ID: marketing[0], Due: due, ValidUntil: due.Add(time.Hour)}}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.CancelMarketing(ctx, c.ID, phone, Begin); err != nil || n != 1 || c.Detail(resent.IDs[0]).State != puntuale.Cancelled {
		t.Errorf("%d re-sent messages cancelled, %v: a re-sent message keeps its purpose", n, err)
	}
}

// testSettings checks that each setting can be changed alone. A client without stored settings has the defaults. New
// clients require consent.
func testSettings(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	w.Exec("delete from client_setting where client_id = $1", c.ID)
	same := func(got, want puntuale.ClientSettings, err error) {
		t.Helper()
		if err != nil || got.Remember != want.Remember || got.KeepReplies != want.KeepReplies || got.Consent != want.Consent || !slices.Equal(got.OptOutWords, want.OptOutWords) ||
			got.OptOutAnswer != want.OptOutAnswer || got.TakeoverHours != want.TakeoverHours || got.AutomatedMost != want.AutomatedMost {
			t.Errorf("settings: %+v, %v, want %+v", got, err, want)
		}
	}
	want := puntuale.DefaultSettings()
	got, err := c.Settings(ctx)
	same(got, want, err)
	want.Remember, want.OptOutWords = true, []string{"BASTA", "non più"}
	got, err = c.UpdateSettings(ctx, puntuale.SettingsPatch{Remember: &want.Remember, OptOutWords: &want.OptOutWords})
	same(got, want, err)
	want.TakeoverHours, want.AutomatedMost, want.OptOutAnswer, want.KeepReplies, want.OptOutWords = 0, 0, "Fatto.", puntuale.KeepAllReplies, nil
	got, err = c.UpdateSettings(ctx, puntuale.SettingsPatch{
		TakeoverHours: &want.TakeoverHours, AutomatedMost: &want.AutomatedMost, OptOutAnswer: &want.OptOutAnswer, KeepReplies: &want.KeepReplies, OptOutWords: &want.OptOutWords,
	})
	same(got, want, err)
	got, err = c.Settings(ctx)
	same(got, want, err)
	required := puntuale.DefaultSettings()
	required.Consent = puntuale.ConsentRequired
	got, err = other.Settings(ctx)
	same(got, required, err)
}

func (c *Client) reply(id string, at time.Time, m puntuale.TakenMessage) puntuale.TakenMessage {
	m.Client, m.Session, m.ID, m.Mark, m.At = c.ID, c.Session, id, id, at
	if m.Phone == "" {
		m.Phone = phone
	}
	if m.Names == nil {
		m.Names = []string{m.Phone}
	}
	if m.Kind == "" {
		m.Kind = puntuale.ReplyText
	}
	if m.Keep == "" {
		m.Keep = puntuale.KeepKnownReplies
	}
	return m
}

func (c *Client) mustTake(now time.Time, all ...puntuale.TakenMessage) {
	c.w.t.Helper()
	if _, err := c.w.KeepInbound(context.Background(), now, all); err != nil {
		c.w.t.Fatalf("keep a reply: %v", err)
	}
}

// testInboundLooks checks that the store itself finds the names and the settings if the caller gives no names. A
// message that may change consent is not taken until its change of consent was entered.
func testInboundLooks(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	const person, number, written = "US.123456789", "+5511987654321", "+551187654321"
	if err := w.KeepAliases(ctx, []puntuale.Alias{{Client: c.ID, Session: c.Session, Name: written, Phone: number}, {Client: c.ID, Session: c.Session, Name: person, Phone: written}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateSettings(ctx, puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies), OptOutWords: &[]string{"ora"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.UpdateSettings(ctx, puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepNoReplies)}); err != nil {
		t.Fatal(err)
	}
	message := func(c *Client, mark string) puntuale.TakenMessage {
		m := puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Client: c.ID, Session: c.Session, Phone: person, At: Begin, ID: mark, Kind: puntuale.ReplyText, Text: "Ciao"}, Mark: mark}
		m.Asks = func(set puntuale.ClientSettings) bool {
			return mark == "asks" && slices.Equal(set.OptOutWords, []string{"ora"})
		}
		return m
	}
	for range 2 {
		c.mustTake(Begin, message(c, "a"))
		other.mustTake(Begin, message(other, "a"), message(other, "asks"))
		if _, err := w.KeepInbound(ctx, Begin, []puntuale.TakenMessage{message(c, "b"), message(c, "asks")}); !errors.Is(err, puntuale.ErrConsentFirst) {
			t.Errorf("a message that may change consent: %v", err)
		}
		if seen, err := w.Seen(ctx, c.ID, "asks"); err != nil || seen {
			t.Errorf("it is taken: %v, %v", seen, err)
		}
	}
	if all := c.mustReplies(puntuale.ReplyFilter{}); len(all) != 1 || all[0].Phone != written || all[0].NetworkID != "a" {
		t.Errorf("kept: %+v", all)
	}
	if all := other.mustReplies(puntuale.ReplyFilter{}); len(all) != 0 {
		t.Errorf("kept for one who keeps nothing: %+v", all)
	}
	for _, name := range []string{person, number, written} {
		if c.window(c.Session, name).IsZero() {
			t.Errorf("%s may not be answered", name)
		}
	}
	if !other.window(other.Session, number).IsZero() {
		t.Error("an alias of one client is another's, too")
	}
	var twins sync.WaitGroup
	for range 20 { // the same message many times at once: no caller may get the answer that it is taken
		twins.Go(func() {
			if _, err := w.KeepInbound(ctx, Begin, []puntuale.TakenMessage{message(c, "asks")}); !errors.Is(err, puntuale.ErrConsentFirst) {
				t.Errorf("one of many that may change consent: %v", err)
			}
		})
	}
	twins.Wait()
	seen := message(c, "asks")
	seen.Names, seen.Keep, seen.Asks = []string{person}, puntuale.KeepAllReplies, nil
	c.mustTake(Begin, seen)
	c.mustTake(Begin, message(c, "asks"), message(c, "b")) // the first message was already taken, so ErrConsentFirst is not returned for it
	if all := c.mustReplies(puntuale.ReplyFilter{}); len(all) != 3 {
		t.Errorf("afterwards: %+v", all)
	}
}

// testInboundGathers checks that messages that come within a short time share transactions. The first message does
// not wait.
func testInboundGathers(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	const n, every = 100, time.Millisecond
	before := w.DB.Meter.Inbound.Load()
	begun := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, err := w.KeepInbound(context.Background(), Begin, []puntuale.TakenMessage{{Mark: "m" + strconv.Itoa(i), InboundMessage: puntuale.InboundMessage{
				Client: c.ID, Session: c.Session, Phone: phone, At: Begin, Kind: puntuale.ReplyText, Text: "Ciao"}}}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(every)
	}
	all.Wait()
	// There is at most one transaction for each ten milliseconds, and one more for the first message.
	if took, limit := time.Since(begun), int64(time.Since(begun)/(10*time.Millisecond))+2; w.DB.Meter.Inbound.Load()-before > limit {
		t.Errorf("%d transactions within %v", w.DB.Meter.Inbound.Load()-before, took)
	}
	if seen := w.Int("select count(*) from inbound_seen where client_id = $1", c.ID); seen != n {
		t.Errorf("%d of %d are taken", seen, n)
	}
}

func (c *Client) mustReplies(f puntuale.ReplyFilter) []puntuale.Reply {
	c.w.t.Helper()
	all, next, err := c.Replies(context.Background(), f, puntuale.Page{})
	if err != nil || next != "" {
		c.w.t.Fatalf("list replies: %q, %v", next, err)
	}
	return all
}

// testReplies checks that a reply is kept once, with the run that it answers. The counts of unread replies change
// when replies are read.
func testReplies(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 1)
	c.MustSend(node, Begin, ids[0])
	later := Begin.Add(time.Hour)
	media := &puntuale.ReplyMedia{Type: "image/jpeg", Size: 3, Until: later, Ref: []byte{0, 1, 2}}
	for range 2 {
		c.mustTake(later, c.reply("a", later, puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Text: "Sì, confermo"}}),
			c.reply("b", later, puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Kind: puntuale.ReplyImage, Media: media}}))
	}
	c.mustTake(later, c.reply("c", later, puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Phone: "+393330000009", Text: "Ciao mamma"}}))
	all := c.mustReplies(puntuale.ReplyFilter{})
	if len(all) != 2 || all[1].Text != "Sì, confermo" || all[1].Run != puntuale.RunID(ids[0]) || !all[1].Read.IsZero() || !all[1].At.Equal(later) || all[1].NetworkID != "a" ||
		all[0].Media == nil || all[0].Media.Type != "image/jpeg" || string(all[0].Media.Ref) != "\x00\x01\x02" {
		t.Errorf("replies: %+v", all)
	}
	if n := len(c.mustReplies(puntuale.ReplyFilter{Unread: true})); n != 2 {
		t.Errorf("%d unread", n)
	}
	if one, err := c.Reply(ctx, all[1].ID); err != nil || one.Text != all[1].Text {
		t.Errorf("one reply: %+v, %v", one, err)
	}
	if _, err := other.Reply(ctx, all[1].ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("another client's reply: %v", err)
	}
	if n := len(other.mustReplies(puntuale.ReplyFilter{})); n != 0 {
		t.Errorf("another client reads %d replies", n)
	}
	talks, _, err := c.Conversations(ctx, true, puntuale.Page{})
	if err != nil || len(talks) != 1 || talks[0].Phone != phone || talks[0].Unread != 2 || talks[0].Last.ID != all[0].ID {
		t.Errorf("conversations: %+v, %v", talks, err)
	}
	if n, err := c.Unread(ctx, 100); err != nil || n != 1 {
		t.Errorf("%d people with unread replies, %v", n, err)
	}
	if n, err := c.MarkRead(ctx, phone, all[1].ID, later); err != nil || n != 1 {
		t.Errorf("%d marked, %v", n, err)
	}
	if n, err := c.MarkRead(ctx, phone, 0, later); err != nil || n != 1 {
		t.Errorf("%d marked, %v", n, err)
	}
	if talk, err := c.Conversation(ctx, phone); err != nil || talk.Unread != 0 || talk.Last.ID != all[0].ID {
		t.Errorf("the conversation: %+v, %v", talk, err)
	}
	if n, err := c.Unread(ctx, 100); err != nil || n != 0 {
		t.Errorf("%d people with unread replies, %v", n, err)
	}
}

// testKeepReplies checks that the client's setting decides which replies are kept. An own message begins a take-over.
func testKeepReplies(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	c.MustSend(node, Begin, c.MustStart(phone, Begin, 1)[0])
	const cold = "+393330000009"
	at := Begin.Add(31 * 24 * time.Hour)
	n := 0
	keep := func(m puntuale.TakenMessage) bool {
		before := len(c.mustReplies(puntuale.ReplyFilter{Own: true}))
		n++
		c.mustTake(at, c.reply("k"+strconv.Itoa(n), m.At, m))
		return len(c.mustReplies(puntuale.ReplyFilter{Own: true})) == before+1
	}
	message := func(phone string, after time.Duration, own bool) puntuale.TakenMessage {
		return puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Phone: phone, At: Begin.Add(after), Own: own, Text: "Ciao"}}
	}
	for i, x := range []struct {
		m    puntuale.TakenMessage
		keep puntuale.KeepReplies
		kept bool
	}{
		{message(phone, time.Hour, false), puntuale.KeepKnownReplies, true},
		{message(phone, 31*24*time.Hour, false), puntuale.KeepKnownReplies, false}, // more than 30 days after the run
		{message(cold, time.Hour, false), puntuale.KeepKnownReplies, false},
		{message(cold, time.Hour, false), puntuale.KeepAllReplies, true},
		{message(phone, time.Hour, false), puntuale.KeepNoReplies, false},
		{message(phone, time.Hour, true), puntuale.KeepKnownReplies, true},
		{message(cold, time.Hour, true), puntuale.KeepKnownReplies, false},
	} {
		x.m.Keep = x.keep
		if got := keep(x.m); got != x.kept {
			t.Errorf("message %d is kept: %v", i, got)
		}
	}
	effect := message(cold, 0, false)
	effect.Effect = puntuale.ReplyOptOut
	if !keep(effect) {
		t.Error("an opt-out of a stranger is not kept")
	}
	if talk, err := c.Conversation(ctx, phone); err != nil || !talk.Answered.Equal(Begin.Add(time.Hour)) || talk.Unread != 1 {
		t.Errorf("the take-over: %+v, %v", talk, err)
	}
	if own := c.mustReplies(puntuale.ReplyFilter{Phone: phone, Own: true}); len(own) != 2 || !own[0].Own || own[0].Read.IsZero() {
		t.Errorf("with own messages: %+v", own)
	}
	none := message(phone, 2*time.Hour, true)
	none.Keep = puntuale.KeepNoReplies
	if keep(none) {
		t.Error("an own message is kept although the client keeps none")
	}
	if talk, err := c.Conversation(ctx, phone); err != nil || !talk.Answered.Equal(Begin.Add(2*time.Hour)) {
		t.Errorf("the take-over of a client that keeps nothing: %+v, %v", talk, err)
	}
	if err := c.Answered(ctx, cold, at); err != nil {
		t.Fatal(err)
	}
	if talk, err := c.Conversation(ctx, cold); err != nil || !talk.Answered.Equal(at) {
		t.Errorf("answered: %+v, %v", talk, err)
	}
}

// testForgetReplies checks that an erasure removes the person's replies, and that blanking removes texts and keeps
// rows. A repeat of a removed message is not stored again.
func testForgetReplies(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	const other = "+393330000009"
	for i, p := range []string{phone, other} {
		c.mustTake(Begin, c.reply("f"+strconv.Itoa(i), Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Phone: p, Text: "segreto"}}))
	}
	c.mustErase(phone, Begin)
	c.mustTake(Begin, c.reply("f0", Begin, puntuale.TakenMessage{Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{Text: "segreto"}}))
	all := c.mustReplies(puntuale.ReplyFilter{})
	if len(all) != 2 || all[0].Text != "segreto" || all[1].Text != "" || all[1].Phone != "" || all[1].NetworkID != "" || !all[1].Blanked {
		t.Errorf("after an erasure: %+v", all)
	}
	if unread := c.mustReplies(puntuale.ReplyFilter{Unread: true}); len(unread) != 1 || unread[0].Phone != other {
		t.Errorf("nobody can open the conversation of an erased person, yet these are unread: %+v", unread)
	}
	if talks, _, err := c.Conversations(ctx, false, puntuale.Page{}); err != nil || len(talks) != 1 || talks[0].Phone != other {
		t.Errorf("conversations after an erasure: %+v, %v", talks, err)
	}
	if err := w.Maintain(ctx, Begin.Add(time.Hour), Begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all = c.mustReplies(puntuale.ReplyFilter{Phone: other}); len(all) != 1 || all[0].Text != "" || !all[0].Blanked {
		t.Errorf("after blanking: %+v", all)
	}
	if err := w.Maintain(ctx, Begin.Add(31*24*time.Hour), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if n := w.Int("select count(*) from inbound_seen where client_id = $1", c.ID); n != 0 {
		t.Errorf("%d messages are known again after 30 days", n)
	}
}

// ofReplies has calls about replies and consent that use data of another client. Each call must find nothing.
var ofReplies = map[string]func(tenant puntuale.Tenant, other *Client, message puntuale.MessageID) (any, error){
	"AddConsent":  nil, // no argument belongs to another client
	"AddConsents": nil,
	"Answered":    nil,
	"ChatwootLink": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.ChatwootLink(context.Background(), other.chatwoot().Session)
	},
	"FinishChatwoot": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.FinishChatwoot(context.Background(), other.chatwoot().ID, 9)
	},
	"LinkChatwoot": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return tenant.LinkChatwoot(context.Background(), other.chatwoot(), []byte("theirs"), Begin)
	},
	"UnlinkChatwoot": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		return nil, tenant.UnlinkChatwoot(context.Background(), other.chatwoot().Session)
	},
	"ConsentStatuses": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, err := tenant.ConsentStatuses(context.Background(), wrote, other.mark(wrote))
		return slices.Collect(maps.Keys(all)), err
	},
	"Consents": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Consents(context.Background(), wrote, other.mark(wrote), puntuale.Page{})
		return all, err
	},
	"Conversation": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		c, err := tenant.Conversation(context.Background(), wrote)
		return make([]int, c.Unread+int(c.Last.ID)), err
	},
	"Conversations": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Conversations(context.Background(), false, puntuale.Page{})
		return all, err
	},
	"MarkRead": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.MarkRead(context.Background(), wrote, 0, Begin)
		return make([]int, n), err
	},
	"Replies": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := tenant.Replies(context.Background(), puntuale.ReplyFilter{Phone: wrote}, puntuale.Page{})
		return all, err
	},
	"Reply": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, _, err := other.Replies(context.Background(), puntuale.ReplyFilter{}, puntuale.Page{})
		if err != nil || len(all) != 1 {
			return nil, errors.Join(errors.New("there is nothing to read"), err)
		}
		return tenant.Reply(context.Background(), all[0].ID)
	},
	"CancelMarketing": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.CancelMarketing(context.Background(), phone, Begin)
		return make([]int, n), err
	},
	"MarketingRefused": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		all, err := tenant.MarketingRefused(context.Background(), []string{wrote}, []string{other.mark(wrote)})
		if !all[wrote] { // a new client requires consent, and the other client's withdrawal must not count
			return nil, errors.Join(errors.New("marketing without consent is not refused"), err)
		}
		return []string(nil), err
	},
	"ReplyWindowOf": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		windowEnd, err := tenant.ReplyWindowOf(context.Background(), other.Session, wrote)
		if windowEnd.IsZero() {
			return []time.Time(nil), err
		}
		return []time.Time{windowEnd}, err
	},
	"Settings":       nil, // no argument can belong to another client
	"UpdateSettings": nil,
	"Unread": func(tenant puntuale.Tenant, _ *Client, _ puntuale.MessageID) (any, error) {
		n, err := tenant.Unread(context.Background(), 100)
		return make([]int, n), err
	},
}

// wrote is the phone of a person who wrote to the other client and opted out there.
const wrote = "+393330000006"
