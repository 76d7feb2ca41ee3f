package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"puntuale"
)

func (c *Client) mustEnter(e puntuale.ConsentEntry) puntuale.ConsentResult {
	c.w.t.Helper()
	e.Client, e.Source, e.Entered = c.ID, "reply", Begin.Add(24*time.Hour)
	if e.Mark == nil {
		e.Mark = c.mark
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

// testOptOut checks that a withdrawal is stored in the ledger and in the blacklist. An undo must remove what the
// withdrawal added. A repeated report must change nothing. A report that is older than the latest report is stored in
// the ledger, but must change nothing else.
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
		{puntuale.ConsentWithdraw, 0, "1", true, true, puntuale.ConsentWithdraw, 2}, // the first report again
		{puntuale.ConsentWithdraw, time.Minute, "2", true, false, puntuale.ConsentWithdraw, 2},
		{puntuale.ConsentUndo, time.Second, "3", false, false, puntuale.ConsentUndo, 2}, // this report is older than the latest report
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
	all, _, err := c.Consents(ctx, c.person(phone), puntuale.Page{})
	if err != nil || len(all) != 8 || all[0].Words != "Basta!" || all[0].Message != "wamid.1" || all[2].Applied || all[7].Change != puntuale.ConsentGrant {
		t.Errorf("ledger: %+v, %v", all, err)
	}
	if everybody, _, err := c.Consents(ctx, puntuale.Person{}, puntuale.Page{}); err != nil || len(everybody) != 10 || !slices.IsSortedFunc(everybody, func(a, b puntuale.Consent) int { return int(a.ID - b.ID) }) {
		t.Errorf("the whole ledger: %+v, %v", everybody, err)
	}
	if foreign, _, err := other.Consents(ctx, c.person(phone), puntuale.Page{}); err != nil || len(foreign) != 0 {
		t.Errorf("another client reads %+v, %v", foreign, err)
	}
	states, err := c.ConsentStatuses(ctx, c.person(phone))
	if st := states[puntuale.PurposeMarketing]; err != nil || st.Change != puntuale.ConsentGrant || !st.At.Equal(Begin.Add(6*time.Hour)) {
		t.Errorf("what holds: %+v, %v", states, err)
	}

	const tied = "+393330000005" // a network tells only the second, so the withdrawal may be later than it looks
	for i, step := range []struct {
		change  puntuale.ConsentChange
		at      time.Duration
		applied bool
	}{
		{puntuale.ConsentGrant, 472 * time.Millisecond, true},
		{puntuale.ConsentWithdraw, -time.Second, false},
		{puntuale.ConsentWithdraw, 471 * time.Millisecond, false},
		{puntuale.ConsentWithdraw, 0, true},
		{puntuale.ConsentGrant, 471 * time.Millisecond, false},
		{puntuale.ConsentGrant, 473 * time.Millisecond, true},
	} {
		if r := c.mustEnter(optOut(tied, Unique("tied"), step.change, step.at)); r.Applied != step.applied {
			t.Errorf("tied, step %d: %+v, want applied %v", i, r, step.applied)
		}
	}
}

// testOwnEntryOverOptOut checks that an entry which the client adds over an opt-out becomes the client's own. An undo
// must not remove it, also if the person was erased and the blacklist contains only the mark.
func testOwnEntryOverOptOut(t *testing.T, w *World) {
	ctx := context.Background()
	for name, add := range map[string]func(*Client, puntuale.BlacklistEntry) error{
		"one": func(c *Client, e puntuale.BlacklistEntry) error { return c.AddBlacklisted(ctx, e, Day, nil) },
		"list": func(c *Client, e puntuale.BlacklistEntry) error {
			_, err := c.AddAllBlacklisted(ctx, []puntuale.BlacklistEntry{e})
			return err
		},
	} {
		c := w.Client(puntuale.AccountTest)
		const erased, former, untouched = "+393330000002", "+393330000003", "+393330000004"
		for i, p := range []string{phone, erased, untouched} {
			c.mustEnter(optOut(p, string(rune('a'+i)), puntuale.ConsentWithdraw, 0))
		}
		w.Exec("insert into blacklist (client_id, phone, id, reason, added_at) values ($1, $2, 999999, $3, 1)", c.ID, former, puntuale.PreferenceReason+"stop")
		c.mustErase(erased, Begin)
		for _, p := range []string{phone, erased, former} {
			if err := add(c, puntuale.BlacklistEntry{Phone: p, Mark: c.mark(p), Reason: "mia", Added: Begin}); err != nil {
				t.Fatal(err)
			}
		}
		c.mustEnter(optOut(former, "g", puntuale.ConsentWithdraw, time.Minute))
		for i, p := range []string{phone, erased, former, untouched} {
			c.mustEnter(optOut(p, string(rune('p'+i)), puntuale.ConsentUndo, time.Hour))
		}
		all, _, err := c.Blacklist(ctx, puntuale.Page{})
		reasons := map[string]string{}
		for _, e := range all {
			reasons[e.Phone] = e.Reason
		}
		if err != nil || len(all) != 3 || reasons[phone] != "mia" || reasons[former] != "mia" || reasons[""] != "" {
			t.Errorf("%s: after the undo there is %+v, %v", name, all, err)
		}
	}
}

// startFor starts n messages with the given purpose.
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
// people who never gave it must get none, either. The blacklist lets only the confirmation of an opt-out through.
func testMarketingNeedsConsent(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	const silent, agreed, gone, service = "+393330000001", "+393330000002", "+393330000003", "+393330000004"
	c.mustEnter(optOut(agreed, "1", puntuale.ConsentGrant, 0))
	c.mustEnter(optOut(gone, "2", puntuale.ConsentWithdraw, 0))
	withdrawnService := optOut(service, "3", puntuale.ConsentWithdraw, 0)
	withdrawnService.Purpose, withdrawnService.Blacklist = puntuale.PurposeService, ""
	c.mustEnter(withdrawnService)
	for _, rule := range []puntuale.ConsentRule{puntuale.ConsentFree, puntuale.ConsentRequired} {
		c.mustRequire(rule)
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
		c.wantClaims("consent "+string(rule), want, phones)
		for id, answer := range want {
			if d := c.Detail(id); answer == puntuale.ClaimNoConsent && (d.State != puntuale.Failed || d.Response().Code != puntuale.ReasonNoConsent || d.Attempt != 0) {
				t.Errorf("marketing without consent: %+v", d)
			}
		}
	}
	erasedGetNoMarketing(t, w, c, gone)
}

// erasedGetNoMarketing erases a person who withdrew consent. Marketing must not reach the person, although the number
// is not stored any more. A second import of a list from before changes nothing. If the person gives consent again, the
// new consent counts.
func erasedGetNoMarketing(t *testing.T, w *World, c *Client, gone string) {
	ctx := context.Background()
	if _, err := c.RemoveBlacklisted(ctx, c.person(gone), Day, Begin); err != nil {
		t.Fatal(err)
	}
	c.mustEnter(optOut(gone, puntuale.ImportMark+"list", puntuale.ConsentGrant, -time.Hour))
	c.mustErase(gone, Begin.Add(2*time.Minute))
	c.mustRequire(puntuale.ConsentFree)
	c.mustEnter(optOut(gone, puntuale.ImportMark+"list", puntuale.ConsentGrant, 24*time.Hour)) // a second import of the same list does not undo the withdrawal
	late := c.startFor(puntuale.PurposeMarketing, gone, Begin, 1)[0]
	c.wantClaims("erased", map[puntuale.MessageID]puntuale.ClaimAnswer{late: puntuale.ClaimNoConsent}, map[puntuale.MessageID]string{late: gone})
	all, _, err := c.Consents(ctx, puntuale.Person{}, puntuale.Page{})
	if err != nil || !slices.ContainsFunc(all, func(e puntuale.Consent) bool { return e.Erased && e.Phone == "" && e.Words == "" && e.Message == "" }) {
		t.Errorf("the ledger after an erasure: %+v, %v", all, err)
	}
	if n := w.Int("select count(*) from consent where phone = $1", gone) + w.Int("select count(*) from consent_state where phone = $1", gone); n != 0 {
		t.Errorf("the number stands in %d rows after the erasure", n)
	}
	c.mustEnter(optOut(gone, "9", puntuale.ConsentGrant, 48*time.Hour))
	again := c.startFor(puntuale.PurposeMarketing, gone, Begin, 1)[0]
	c.wantClaims("a new consent", map[puntuale.MessageID]puntuale.ClaimAnswer{again: puntuale.ClaimGranted}, map[puntuale.MessageID]string{again: gone})
}

// mustRequire sets the client's rule of consent.
func (c *Client) mustRequire(rule puntuale.ConsentRule) {
	c.w.t.Helper()
	if _, err := c.UpdateSettings(context.Background(), puntuale.SettingsPatch{Consent: &rule}); err != nil {
		c.w.t.Fatal(err)
	}
}

// wantClaims claims the messages a minute after Begin, and compares the answers. It records that the granted messages
// were sent.
func (c *Client) wantClaims(what string, want map[puntuale.MessageID]puntuale.ClaimAnswer, phones map[puntuale.MessageID]string) {
	c.w.t.Helper()
	items := make([]puntuale.ClaimItem, 0, len(want))
	for id := range want {
		items = append(items, puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: c.ID, ID: id}, Phone: phones[id], Mark: c.mark(phones[id])})
	}
	token, answers := c.w.MustClaim(c.w.MustJoin(), Begin.Add(time.Minute), items...)
	for i, it := range items {
		if answers[i] == puntuale.ClaimGranted {
			c.w.MustRecord(Begin.Add(time.Minute), it, token, puntuale.Outcome{Verdict: puntuale.Sent})
		}
		if answers[i] != want[it.ID] {
			c.w.t.Errorf("%s: message %d to %s is answered %v, want %v", what, it.ID, it.Phone, answers[i], want[it.ID])
		}
	}
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

// testSettings checks that each setting can be changed without the others. A client without stored settings must have
// the defaults. New clients must require consent.
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
