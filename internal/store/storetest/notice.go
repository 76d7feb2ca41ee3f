package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// told makes facts of the client true at a moment.
func (c *Client) told(at time.Time, facts ...outbox.Fact) {
	c.w.t.Helper()
	for i := range facts {
		facts[i].Client = c.ID
	}
	c.w.mustTell(at, facts...)
}

func (w *World) mustTell(at time.Time, facts ...outbox.Fact) {
	w.t.Helper()
	if err := w.Write(context.Background(), 1, func(ctx context.Context, a engine.Querier) error { return outbox.Tell(ctx, a, at, facts...) }); err != nil {
		w.t.Fatal(err)
	}
}

// reader makes a user of the client, or with nil of the partner.
func (w *World) reader(c *Client, role puntuale.Role) puntuale.User {
	w.t.Helper()
	ctx := context.Background()
	u := puntuale.User{Email: Unique("u") + "@example.com", Password: "x", Role: role, Created: Begin}
	if c != nil {
		u.Client = c.ID
	}
	id, err := w.Store.Partner(w.Partner).CreateUser(ctx, u, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	u, _, err = w.UserByID(ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// notices are the kinds of what a user sees, newest first.
func (w *World) notices(u puntuale.User, now time.Time) (kinds []puntuale.NoticeKind) {
	w.t.Helper()
	all, err := w.LatestNotices(context.Background(), u, now)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range all {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

func (w *World) unread(u puntuale.User, now time.Time) int {
	w.t.Helper()
	n, err := w.UnreadNotices(context.Background(), u, now, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *World) wantNotices(what string, u puntuale.User, now time.Time, want ...puntuale.NoticeKind) {
	w.t.Helper()
	if got := w.notices(u, now); !slices.Equal(got, want) {
		w.t.Errorf("%s: notices %v, want %v", what, got, want)
	}
}

// Each fact makes one notice. The users that it concerns see it.
func testNotices(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	owner, staff, theirs, partner := w.reader(c, puntuale.Owner), w.reader(c, puntuale.Staff), w.reader(other, puntuale.Owner), w.reader(nil, puntuale.Owner)
	at := func(n int) time.Time { return Begin.Add(time.Duration(n) * time.Minute) }
	webhook, err := c.CreateWebhook(ctx, puntuale.Webhook{URL: "https://crm.example/x"}, []byte("s"), Begin, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []outbox.Fact{
		{Type: puntuale.EventCreditLow}, {Type: puntuale.EventCreditOut}, {Type: puntuale.EventCapReached}, {Type: puntuale.EventCap80},
		{Type: puntuale.EventAccountExpiring, Detail: `{"days":14}`}, {Type: puntuale.EventAccountExpired},
		{Type: puntuale.EventCampaignDone, Subject: 7, Detail: `{"state":"failed"}`}, {Type: puntuale.EventCampaignPaused, Subject: 7, Detail: `{"reason":"canary"}`}, {Type: puntuale.EventCampaignPaused, Subject: 7},
		{Type: puntuale.EventCampaignStarted, Subject: 7}, {Type: puntuale.EventCampaignDone, Subject: 8, Detail: `{"state":"cancelled"}`}, {Type: puntuale.EventTemplateChanged, Subject: 7},
		{Type: puntuale.EventWebhookDisabled, Subject: int64(webhook), Detail: `{"reason":"[\"webhook.gone\"]"}`},
	} {
		c.told(at(i), f)
	}
	if _, err := w.Store.Partner(w.Partner).CreateKey(ctx, c.ID, puntuale.Key{Name: "gestionale", Hash: keyHash(), Created: at(20)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Partner(w.Partner).CreateKey(ctx, 0, puntuale.Key{Name: "nostra", Hash: keyHash(), Created: at(20)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Partner(w.Partner).UpdateUser(ctx, c.ID, staff.ID, puntuale.UserPatch{Seen: to(at(21)), NewPlace: to("203.0.113.9")}, nil); err != nil {
		t.Fatal(err)
	}
	const (
		low, out, reached, expires = puntuale.NoticeCreditLow, puntuale.NoticeCreditOut, puntuale.NoticeCapReached, puntuale.NoticeExpiring
		done, paused, disabled     = puntuale.NoticeCampaignDone, puntuale.NoticeCampaignPaused, puntuale.NoticeWebhookDisabled
		key, signIn, clientExpires = puntuale.NoticeKeyCreated, puntuale.NoticeSignIn, puntuale.NoticeClientExpiring
	)
	now := at(30)
	w.wantNotices("an owner", owner, now, key, disabled, paused, done, expires, expires, reached, out, low)
	w.wantNotices("who signed in", staff, now, signIn, disabled, paused, done, expires, expires, reached, out, low)
	w.wantNotices("another client's", theirs, now)
	w.wantNotices("the partner's", partner, now, key, clientExpires, clientExpires)
	late := w.reader(c, puntuale.Reader)
	late.Created = at(19)
	w.wantNotices("who came later", late, now)
	w.wantNotices("before", owner, at(1), out, low)

	all, err := w.LatestNotices(ctx, owner, now)
	if err != nil {
		t.Fatal(err)
	}
	if n := all[0]; n.Name != "gestionale" || !n.At.Equal(at(20)) || n.Read {
		t.Errorf("the key: %+v", n)
	}
	if n := all[1]; n.Name != "https://crm.example/x" || n.Detail.Reason != `["webhook.gone"]` {
		t.Errorf("the webhook: %+v", n)
	}
	if all[3].Detail.State != "failed" {
		t.Errorf("the campaign: %+v", all[3])
	}
	if all[4].Detail.Event != puntuale.EventAccountExpired || all[5].Detail.Days != 14 {
		t.Errorf("the days: %+v", all[4:6])
	}
	if mine, err := w.LatestNotices(ctx, staff, now); err != nil || mine[0].Detail.Address != "203.0.113.9" {
		t.Errorf("the sign-in: %+v, %v", mine, err)
	}
	if theirs, err := w.LatestNotices(ctx, partner, now); err != nil || theirs[1].Name != "Cliente" || theirs[1].Subject != int64(c.ID) {
		t.Errorf("a client's account: %+v, %v", theirs, err)
	}

	// Each user has marks of their own, and nobody marks what they do not see.
	if n := w.unread(owner, now); n != 9 {
		t.Errorf("%d unread", n)
	}
	for _, mark := range []struct {
		by puntuale.User
		id puntuale.NoticeID
	}{{owner, all[0].ID}, {owner, all[0].ID}, {theirs, all[1].ID}, {partner, all[1].ID}} {
		if err := w.ReadNotices(ctx, mark.by, mark.id, now); err != nil {
			t.Fatal(err)
		}
	}
	if n, others := w.unread(owner, now), w.unread(staff, now); n != 8 || others != 9 || w.Int("select count(*) from notice_read") != 1 {
		t.Errorf("%d and %d unread", n, others)
	}
	if err := w.ReadNotices(ctx, owner, 0, at(1)); err != nil || w.unread(owner, now) != 6 {
		t.Errorf("read by a moment: %d unread, %v", w.unread(owner, now), err)
	}
	if err := w.ReadNotices(ctx, owner, 0, now); err != nil || w.unread(owner, now) != 0 || w.unread(staff, now) != 9 {
		t.Errorf("read all: %d unread, %v", w.unread(owner, now), err)
	}
}

// A number is told of once in each incident, after five minutes, and so is its return.
func testIncidents(t *testing.T, w *World) {
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	u := w.reader(c, puntuale.Owner)
	const off, on = puntuale.NoticeDisconnected, puntuale.NoticeReconnected
	online, offline := outbox.Fact{Type: puntuale.EventSessionOnline, Subject: int64(c.Session)}, outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(c.Session)}
	unlinked := outbox.Fact{Type: puntuale.EventSessionUnlinked, Subject: int64(c.Session)}
	at := func(n int) time.Time { return Begin.Add(time.Duration(n) * time.Minute) }
	c.told(at(0), online)
	c.told(at(1), offline)
	c.told(at(2), offline)
	w.wantNotices("too early", u, at(6).Add(-time.Second))
	c.told(at(6).Add(-time.Second), online)
	w.wantNotices("it came back in time", u, at(60))
	c.told(at(10), offline)
	other.told(at(11), online) // another client's session of the same id changes nothing
	c.told(at(12), outbox.Fact{Type: puntuale.EventSessionOnline, Subject: int64(c.Session) + 1000})
	w.wantNotices("in time", u, at(15), off)
	c.told(at(16), unlinked)
	c.told(at(17), offline)
	w.wantNotices("the same incident", u, at(60), off)
	c.told(at(20), online)
	c.told(at(21), online)
	w.wantNotices("back", u, at(60), on, off)
	c.told(at(30), unlinked)
	w.wantNotices("the next", u, at(60), off, on, off)
	all, err := w.LatestNotices(context.Background(), u, at(60))
	if err != nil || all[0].Detail.Event != puntuale.EventSessionUnlinked || all[0].Name != "predefinita" || !all[0].At.Equal(at(30)) {
		t.Errorf("%+v, %v", all, err)
	}
	// A limit on messages to cold contacts does not disconnect.
	other.told(at(60), outbox.Fact{Type: puntuale.EventSessionRestricted, Subject: int64(other.Session), Detail: `{"state":"online"}`})
	if n := w.Int("select count(*) from notice where client_id = $1", other.ID); n != 0 {
		t.Errorf("%d notices of a limit", n)
	}
	// A deleted session is told of no more.
	extra := c.MustGateway("extra")
	c.told(at(61), outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(extra)})
	if err := c.DeleteSession(context.Background(), extra, true, 0, at(62)); err != nil {
		t.Fatal(err)
	}
	w.wantNotices("a deleted session", u, at(90), off, on, off)
}

// Old notices go, and those beyond the bound. The open incident stays.
func testNoticesBounded(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	u := w.reader(c, puntuale.Owner)
	c.told(Begin, outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(c.Session)}, outbox.Fact{Type: puntuale.EventCreditLow})
	for i := range puntuale.MaxNotices + 5 {
		c.told(Begin.Add(time.Duration(i)*time.Second), outbox.Fact{Type: puntuale.EventCampaignDone, Subject: int64(i)})
	}
	now := Begin.Add(time.Hour)
	if err := w.ReadNotices(ctx, u, 0, now); err != nil {
		t.Fatal(err)
	}
	if err := w.Maintain(ctx, now, time.Time{}); err != nil {
		t.Fatal(err)
	}
	all, err := w.LatestNotices(ctx, u, now)
	if err != nil || len(all) != puntuale.MaxNotices+2 || all[1].Subject != puntuale.MaxNotices+4 || w.Int("select count(*) from notice_read") != int64(len(all)) {
		t.Errorf("%d are left, the latest about %d; %v", len(all), all[1].Subject, err)
	}
	now = Begin.Add(puntuale.KeepNotices + time.Minute)
	if err := w.Maintain(ctx, now, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.wantNotices("after 90 days", u, now, puntuale.NoticeDisconnected)
	if n := w.Int("select count(*) from notice_read"); n != 1 {
		t.Errorf("%d marks are left", n)
	}
}

// What was of a deleted client or user is gone.
func testNoticesForgotten(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	p := w.Store.Partner(w.Partner)
	keep := func(u puntuale.User) puntuale.User {
		t.Helper()
		if err := w.ReadNotices(ctx, u, 0, Begin); err != nil {
			t.Fatal(err)
		}
		if err := w.ChooseNotices(ctx, u, puntuale.NoticeChoice{Off: 2}); err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, client := range []*Client{c, other} {
		client.told(Begin, outbox.Fact{Type: puntuale.EventAccountExpiring, Detail: `{"days":3}`})
	}
	mine, gone, theirs, partner := w.reader(c, puntuale.Owner), w.reader(other, puntuale.Owner), w.reader(other, puntuale.Owner), w.reader(nil, puntuale.Owner)
	if _, err := p.UpdateUser(ctx, other.ID, gone.ID, puntuale.UserPatch{Seen: to(Begin), NewPlace: to("")}, nil); err != nil {
		t.Fatal(err)
	}
	for _, u := range []puntuale.User{mine, gone, theirs, partner} {
		keep(u)
	}
	if _, err := w.QueueNotices(ctx, Begin); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteUser(ctx, other.ID, gone.ID); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteClient(ctx, c.ID, Begin); err != nil {
		t.Fatal(err)
	}
	c.told(Begin, outbox.Fact{Type: puntuale.EventCreditLow}) // too late
	w.wantNotices("the client's", mine, Begin)
	w.wantNotices("another's", theirs, Begin, puntuale.NoticeExpiring)
	w.wantNotices("the partner's", partner, Begin, puntuale.NoticeClientExpiring)
	if all, err := w.LatestNotices(ctx, partner, Begin); err != nil || all[0].Subject != int64(other.ID) {
		t.Errorf("%+v, %v", all, err)
	}
	for _, table := range []string{"notice", "notice_read"} {
		if n := w.Int("select count(*) from " + table); n != 2 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
	for _, u := range []puntuale.User{mine, gone} {
		if n := w.Int("select (select count(*) from notice_choice where login_id = $1) + (select count(*) from notice_read where login_id = $1) + (select count(*) from mail where login_id = $1)", u.ID); n != 0 {
			t.Errorf("%d rows of user %d are left", n, u.ID)
		}
	}
}

// queuedMails are a user's e-mails about notices, with the number of notices of each.
func (w *World) queuedMails(u puntuale.User) (all []puntuale.Mail, sizes []int) {
	w.t.Helper()
	rows, err := w.DB.SQL.Query("select id, sealed, next_at from mail where login_id = $1 and kind = $2 order by id", u.ID, int64(puntuale.MailNotices))
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		m := puntuale.Mail{User: u.ID, Kind: puntuale.MailNotices}
		if err := rows.Scan(&m.ID, &m.Sealed, engine.ScanTime(&m.Queued)); err != nil {
			w.t.Fatal(err)
		}
		var content struct {
			Notices []int64
			More    int
		}
		if err := json.Unmarshal(m.Sealed, &content); err != nil {
			w.t.Fatal(err)
		}
		all, sizes = append(all, m), append(sizes, len(content.Notices)+content.More)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all, sizes
}

// Notices reach those who want them by e-mail, each once, however many nodes look. Many share an e-mail.
func testNoticeMails(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	owner, reader, asks := w.reader(c, puntuale.Owner), w.reader(c, puntuale.Reader), w.reader(c, puntuale.Reader)
	if err := w.ChooseNotices(ctx, asks, puntuale.NoticeChoice{On: puntuale.NoticesOf(puntuale.NoticeCreditLow)}); err != nil {
		t.Fatal(err)
	}
	if choice, err := w.NoticeChoice(ctx, asks); err != nil || choice.Mailed(asks) != puntuale.NoticesOf(puntuale.NoticeCreditLow, puntuale.NoticeSignIn) {
		t.Errorf("chosen: %v, %v", choice, err)
	}
	c.told(Begin, outbox.Fact{Type: puntuale.EventCreditLow}, outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(c.Session)}, outbox.Fact{Type: puntuale.EventCampaignDone, Subject: 1})
	queue := func(now time.Time, nodes int) {
		t.Helper()
		together(nodes, func(int) {
			if _, err := w.QueueNotices(ctx, now); err != nil {
				t.Error(err)
			}
		})
	}
	queue(Begin, 4)
	if _, sizes := w.queuedMails(owner); !slices.Equal(sizes, []int{1}) {
		t.Errorf("the owner's e-mails: %v", sizes)
	}
	if _, sizes := w.queuedMails(reader); sizes != nil {
		t.Errorf("a reader's e-mails: %v", sizes)
	}
	if _, sizes := w.queuedMails(asks); !slices.Equal(sizes, []int{1}) {
		t.Errorf("e-mails of who asks: %v", sizes)
	}
	queue(Begin.Add(puntuale.NoticeWait), 4)
	waiting, sizes := w.queuedMails(owner)
	if !slices.Equal(sizes, []int{2}) {
		t.Fatalf("the owner's e-mails: %v", sizes)
	}
	kinds := func(m puntuale.Mail) (kinds []puntuale.NoticeKind) {
		t.Helper()
		all, more, err := w.QueuedNotices(ctx, owner, m)
		if err != nil || more != 0 {
			t.Fatalf("%d more, %v", more, err)
		}
		for _, n := range all {
			kinds = append(kinds, n.Kind)
		}
		return kinds
	}
	if got := kinds(waiting[0]); !slices.Equal(got, []puntuale.NoticeKind{puntuale.NoticeCreditLow, puntuale.NoticeDisconnected}) {
		t.Errorf("the e-mail has %v", got)
	}
	// It leaves out a notice that the user read meanwhile, or does not want any more.
	if err := w.ReadNotices(ctx, owner, 0, Begin); err != nil {
		t.Fatal(err)
	}
	if got := kinds(waiting[0]); !slices.Equal(got, []puntuale.NoticeKind{puntuale.NoticeDisconnected}) {
		t.Errorf("after a look at the bell it has %v", got)
	}
	if err := w.ChooseNotices(ctx, owner, puntuale.NoticeChoice{Off: puntuale.NoticesOf(puntuale.NoticeDisconnected)}); err != nil || kinds(waiting[0]) != nil {
		t.Errorf("after the choice it has %v, %v", kinds(waiting[0]), err)
	}
	// An e-mail that another caller is already sending stays as it is.
	if claimed, err := w.ClaimMails(ctx, Begin.Add(time.Hour), 10); err != nil || len(claimed) != 3 { // the client's first owner gets one, too
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	c.told(Begin.Add(time.Hour), outbox.Fact{Type: puntuale.EventCreditOut})
	queue(Begin.Add(time.Hour), 1)
	if _, sizes := w.queuedMails(owner); !slices.Equal(sizes, []int{2, 1}) {
		t.Errorf("the owner's e-mails: %v", sizes)
	}
	// A notice that is older than a day gets no e-mail.
	c.told(Begin.Add(2*time.Hour), outbox.Fact{Type: puntuale.EventCapReached})
	queue(Begin.Add(26*time.Hour), 1)
	if _, sizes := w.queuedMails(owner); !slices.Equal(sizes, []int{2, 1}) || w.Int("select count(*) from notice where mailed = 0") != 0 {
		t.Errorf("the owner's e-mails: %v", sizes)
	}
}

// A user gets so many e-mails a day, and then one with all the rest.
func testNoticeMailsBounded(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	u := w.reader(c, puntuale.Owner)
	if err := w.ChooseNotices(ctx, u, puntuale.NoticeChoice{On: puntuale.NoticesOf(puntuale.NoticeCampaignDone)}); err != nil {
		t.Fatal(err)
	}
	const many = puntuale.NoticeMails + puntuale.MailedNotices + 5
	var sent int
	for i := range many {
		now := Begin.Add(time.Duration(i) * time.Minute)
		c.told(now, outbox.Fact{Type: puntuale.EventCampaignDone, Subject: int64(i)})
		if _, err := w.QueueNotices(ctx, now); err != nil {
			t.Fatal(err)
		}
		claimed, err := w.ClaimMails(ctx, now, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range claimed {
			sent++
			if err := w.EndMail(ctx, m, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting, sizes := w.queuedMails(u)
	if sent != puntuale.NoticeMails || !slices.Equal(sizes, []int{many - puntuale.NoticeMails}) || !waiting[0].Queued.Equal(Begin.Add(puntuale.NoticeMailPeriod)) {
		t.Fatalf("%d were sent; those that wait: %v", sent, sizes)
	}
	all, more, err := w.QueuedNotices(ctx, u, waiting[0])
	if err != nil || len(all) != puntuale.MailedNotices || more != 5 || all[len(all)-1].Subject != many-1 {
		t.Errorf("%d notices and %d more, %v", len(all), more, err)
	}
}
