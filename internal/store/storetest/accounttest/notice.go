package accounttest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/storetest"
)

// told writes facts of the client, in one transaction.
func told(w *storetest.World, c *storetest.Client, at time.Time, facts ...outbox.Fact) {
	w.Test().Helper()
	for i := range facts {
		facts[i].Client = c.ID
	}
	mustTell(w, at, facts...)
}

func mustTell(w *storetest.World, at time.Time, facts ...outbox.Fact) {
	w.Test().Helper()
	if err := w.Write(context.Background(), 1, func(ctx context.Context, a engine.Querier) error { return outbox.Tell(ctx, a, at, facts...) }); err != nil {
		w.Test().Fatal(err)
	}
}

// newReader creates a user of the client. If c is nil, it creates a user of the partner.
func newReader(w *storetest.World, c *storetest.Client, role puntuale.Role) puntuale.User {
	w.Test().Helper()
	ctx := context.Background()
	u := puntuale.User{Email: storetest.Unique("u") + "@example.com", Password: "x", Role: role, Created: storetest.Begin}
	if c != nil {
		u.Client = c.ID
	}
	id, err := w.Store.Partner(w.Partner).CreateUser(ctx, u, nil)
	if err != nil {
		w.Test().Fatal(err)
	}
	u, _, err = w.UserByID(ctx, id)
	if err != nil {
		w.Test().Fatal(err)
	}
	return u
}

// notices returns the kinds of the notices that a user sees, newest first.
func notices(w *storetest.World, u puntuale.User, now time.Time) (kinds []puntuale.NoticeKind) {
	w.Test().Helper()
	all, err := w.LatestNotices(context.Background(), u, now)
	if err != nil {
		w.Test().Fatal(err)
	}
	for _, n := range all {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

func unread(w *storetest.World, u puntuale.User, now time.Time) int {
	w.Test().Helper()
	n, err := w.UnreadNotices(context.Background(), u, now, 100)
	if err != nil {
		w.Test().Fatal(err)
	}
	return n
}

func wantNotices(w *storetest.World, what string, u puntuale.User, now time.Time, want ...puntuale.NoticeKind) {
	w.Test().Helper()
	if got := notices(w, u, now); !slices.Equal(got, want) {
		w.Test().Errorf("%s: notices %v, want %v", what, got, want)
	}
}

// testNotices checks that each fact writes one notice, and that exactly the right users see it.
func testNotices(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	owner, staff, theirs, partner := newReader(w, c, puntuale.Owner), newReader(w, c, puntuale.Staff), newReader(w, other, puntuale.Owner), newReader(w, nil, puntuale.Owner)
	at := func(n int) time.Time { return storetest.Begin.Add(time.Duration(n) * time.Minute) }
	webhook, err := c.CreateWebhook(ctx, puntuale.Webhook{URL: "https://crm.example/x"}, []byte("s"), storetest.Begin, nil)
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
		told(w, c, at(i), f)
	}
	if _, err := w.Store.Partner(w.Partner).CreateKey(ctx, c.ID, puntuale.Key{Name: "gestionale", Hash: storetest.KeyHash(), Created: at(20)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Partner(w.Partner).CreateKey(ctx, 0, puntuale.Key{Name: "nostra", Hash: storetest.KeyHash(), Created: at(20)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Partner(w.Partner).UpdateUser(ctx, c.ID, staff.ID, puntuale.UserPatch{Seen: storetest.To(at(21)), NewPlace: storetest.To("203.0.113.9")}, nil); err != nil {
		t.Fatal(err)
	}
	const (
		low, out, reached, expires = puntuale.NoticeCreditLow, puntuale.NoticeCreditOut, puntuale.NoticeCapReached, puntuale.NoticeExpiring
		done, paused, disabled     = puntuale.NoticeCampaignDone, puntuale.NoticeCampaignPaused, puntuale.NoticeWebhookDisabled
		key, signIn, clientExpires = puntuale.NoticeKeyCreated, puntuale.NoticeSignIn, puntuale.NoticeClientExpiring
	)
	now := at(30)
	wantNotices(w, "an owner", owner, now, key, disabled, paused, done, expires, expires, reached, out, low)
	wantNotices(w, "who signed in", staff, now, signIn, disabled, paused, done, expires, expires, reached, out, low)
	wantNotices(w, "another client's", theirs, now)
	wantNotices(w, "the partner's", partner, now, key, clientExpires, clientExpires)
	late := newReader(w, c, puntuale.Reader)
	late.Created = at(19)
	wantNotices(w, "who came later", late, now)
	wantNotices(w, "before", owner, at(1), out, low)

	wantDetails(t, w, c, owner, staff, partner, at)
	wantMarks(t, w, owner, staff, theirs, partner, at)
	wantGathered(t, w, []*storetest.Client{c, other}, partner, at)
}

// wantGathered checks that clients of a partner that expire at the same time are one notice.
func wantGathered(t *testing.T, w *storetest.World, clients []*storetest.Client, partner puntuale.User, at func(int) time.Time) {
	before, err := w.LatestNotices(context.Background(), partner, at(40))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		told(w, c, at(35), outbox.Fact{Type: puntuale.EventAccountExpiring, Detail: `{"days":7}`})
	}
	after, err := w.LatestNotices(context.Background(), partner, at(40))
	if err != nil || len(after) != len(before)+1 {
		t.Fatalf("%d notices, %d before, %v", len(after), len(before), err)
	}
	if n := after[0]; n.Detail.Clients != len(clients) || n.Subject != 0 || n.Detail.Days != 7 {
		t.Errorf("gathered: %+v", n)
	}
}

// wantDetails checks the details of the notices that testNotices wrote.
func wantDetails(t *testing.T, w *storetest.World, c *storetest.Client, owner, staff, partner puntuale.User, at func(int) time.Time) {
	ctx, now := context.Background(), at(30)
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
}

// wantMarks checks that a notice that one user has read stays unread for other users. Users must not be able to mark
// notices that they do not see.
func wantMarks(t *testing.T, w *storetest.World, owner, staff, theirs, partner puntuale.User, at func(int) time.Time) {
	ctx, now := context.Background(), at(30)
	all, err := w.LatestNotices(ctx, owner, now)
	if err != nil {
		t.Fatal(err)
	}
	if n := unread(w, owner, now); n != 9 {
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
	if n, others := unread(w, owner, now), unread(w, staff, now); n != 8 || others != 9 || w.Int("select count(*) from notice_read") != 1 {
		t.Errorf("%d and %d unread", n, others)
	}
	if err := w.ReadNotices(ctx, owner, 0, at(1)); err != nil || unread(w, owner, now) != 6 {
		t.Errorf("read by a moment: %d unread, %v", unread(w, owner, now), err)
	}
	if err := w.ReadNotices(ctx, owner, 0, now); err != nil || unread(w, owner, now) != 0 || unread(w, staff, now) != 9 {
		t.Errorf("read all: %d unread, %v", unread(w, owner, now), err)
	}
}

// testIncidents checks the notices of disconnected sessions. Each incident must have one notice, which is due after
// five minutes. A second notice follows when the session is online again.
func testIncidents(t *testing.T, w *storetest.World) {
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	u := newReader(w, c, puntuale.Owner)
	const off, on = puntuale.NoticeDisconnected, puntuale.NoticeReconnected
	online, offline := outbox.Fact{Type: puntuale.EventSessionOnline, Subject: int64(c.Session)}, outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(c.Session)}
	unlinked := outbox.Fact{Type: puntuale.EventSessionUnlinked, Subject: int64(c.Session)}
	at := func(n int) time.Time { return storetest.Begin.Add(time.Duration(n) * time.Minute) }
	told(w, c, at(0), online)
	told(w, c, at(1), offline)
	told(w, c, at(2), offline)
	wantNotices(w, "too early", u, at(6).Add(-time.Second))
	told(w, c, at(6).Add(-time.Second), online)
	wantNotices(w, "it came back in time", u, at(60))
	told(w, c, at(10), offline)
	told(w, other, at(11), online) // this fact belongs to another client, so it must change nothing
	told(w, c, at(12), outbox.Fact{Type: puntuale.EventSessionOnline, Subject: int64(c.Session) + 1000})
	wantNotices(w, "in time", u, at(15), off)
	told(w, c, at(16), unlinked)
	told(w, c, at(17), offline)
	wantNotices(w, "the same incident", u, at(60), off)
	told(w, c, at(20), online)
	told(w, c, at(21), online)
	wantNotices(w, "back", u, at(60), on, off)
	told(w, c, at(30), unlinked)
	wantNotices(w, "the next", u, at(60), off, on, off)
	all, err := w.LatestNotices(context.Background(), u, at(60))
	if err != nil || all[0].Detail.Event != puntuale.EventSessionUnlinked || all[0].Name != "predefinita" || !all[0].At.Equal(at(30)) {
		t.Errorf("%+v, %v", all, err)
	}
	// If only messages to cold contacts are limited, the session is not disconnected.
	told(w, other, at(60), outbox.Fact{Type: puntuale.EventSessionRestricted, Subject: int64(other.Session), Detail: `{"state":"online"}`})
	if n := w.Int("select count(*) from notice where client_id = $1", other.ID); n != 0 {
		t.Errorf("%d notices of a limit", n)
	}
	// A deleted session must get no further notice.
	extra := c.MustGateway("extra")
	told(w, c, at(61), outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(extra)})
	if err := c.DeleteSession(context.Background(), extra, true, 0, at(62)); err != nil {
		t.Fatal(err)
	}
	wantNotices(w, "a deleted session", u, at(90), off, on, off)
}

// testNoticesBounded checks that Maintain deletes old notices, and notices beyond the largest number. The notice of an
// open incident must stay.
func testNoticesBounded(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	u := newReader(w, c, puntuale.Owner)
	told(w, c, storetest.Begin, outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(c.Session)}, outbox.Fact{Type: puntuale.EventCreditLow})
	for i := range puntuale.MaxNotices + 5 {
		told(w, c, storetest.Begin.Add(time.Duration(i)*time.Second), outbox.Fact{Type: puntuale.EventCampaignDone, Subject: int64(i)})
	}
	now := storetest.Begin.Add(time.Hour)
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
	now = storetest.Begin.Add(puntuale.KeepNotices + time.Minute)
	if err := w.Maintain(ctx, now, time.Time{}); err != nil {
		t.Fatal(err)
	}
	wantNotices(w, "after 90 days", u, now, puntuale.NoticeDisconnected)
	if n := w.Int("select count(*) from notice_read"); n != 1 {
		t.Errorf("%d marks are left", n)
	}
}

// testNoticesForgotten checks that no notices of deleted clients and users are left.
func testNoticesForgotten(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	p := w.Store.Partner(w.Partner)
	keep := func(u puntuale.User) puntuale.User {
		t.Helper()
		if err := w.ReadNotices(ctx, u, 0, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		if err := w.ChooseNotices(ctx, u, puntuale.NoticeChoice{Off: 2}); err != nil {
			t.Fatal(err)
		}
		return u
	}
	told(w, c, storetest.Begin, outbox.Fact{Type: puntuale.EventAccountExpiring, Detail: `{"days":3}`})
	told(w, other, storetest.Begin, outbox.Fact{Type: puntuale.EventAccountExpiring, Detail: `{"days":7}`}) // of the same days, both would be one notice
	mine, gone, theirs, partner := newReader(w, c, puntuale.Owner), newReader(w, other, puntuale.Owner), newReader(w, other, puntuale.Owner), newReader(w, nil, puntuale.Owner)
	if _, err := p.UpdateUser(ctx, other.ID, gone.ID, puntuale.UserPatch{Seen: storetest.To(storetest.Begin), NewPlace: storetest.To("")}, nil); err != nil {
		t.Fatal(err)
	}
	for _, u := range []puntuale.User{mine, gone, theirs, partner} {
		keep(u)
	}
	if _, err := w.QueueNotices(ctx, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteUser(ctx, other.ID, gone.ID); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteClient(ctx, c.ID, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	told(w, c, storetest.Begin, outbox.Fact{Type: puntuale.EventCreditLow}) // the client is already deleted, so this must write nothing
	wantNotices(w, "the client's", mine, storetest.Begin)
	wantNotices(w, "another's", theirs, storetest.Begin, puntuale.NoticeExpiring)
	wantNotices(w, "the partner's", partner, storetest.Begin, puntuale.NoticeClientExpiring)
	if all, err := w.LatestNotices(ctx, partner, storetest.Begin); err != nil || all[0].Subject != int64(other.ID) {
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

// queuedMails returns a user's queued e-mails about notices, and how many notices each contains.
func queuedMails(w *storetest.World, u puntuale.User) (all []puntuale.Mail, sizes []int) {
	w.Test().Helper()
	rows, err := w.DB.SQL.Query("select id, sealed, next_at from mail where login_id = $1 and kind = $2 order by id", u.ID, int64(puntuale.MailNotices))
	if err != nil {
		w.Test().Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		m := puntuale.Mail{User: u.ID, Kind: puntuale.MailNotices}
		if err := rows.Scan(&m.ID, &m.Sealed, engine.ScanTime(&m.Queued)); err != nil {
			w.Test().Fatal(err)
		}
		var content struct {
			Notices []int64
			More    int
		}
		if err := json.Unmarshal(m.Sealed, &content); err != nil {
			w.Test().Fatal(err)
		}
		all, sizes = append(all, m), append(sizes, len(content.Notices)+content.More)
	}
	if err := rows.Err(); err != nil {
		w.Test().Fatal(err)
	}
	return all, sizes
}

// testNoticeMails checks that users get by e-mail the notices that they chose, each once, even if several nodes queue
// them. Many notices must share an e-mail.
func testNoticeMails(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	owner, reader, asks := newReader(w, c, puntuale.Owner), newReader(w, c, puntuale.Reader), newReader(w, c, puntuale.Reader)
	if err := w.ChooseNotices(ctx, asks, puntuale.NoticeChoice{On: puntuale.NoticesOf(puntuale.NoticeCreditLow)}); err != nil {
		t.Fatal(err)
	}
	if choice, err := w.NoticeChoice(ctx, asks); err != nil || choice.Mailed(asks) != puntuale.NoticesOf(puntuale.NoticeCreditLow, puntuale.NoticeSignIn) {
		t.Errorf("chosen: %v, %v", choice, err)
	}
	told(w, c, storetest.Begin, outbox.Fact{Type: puntuale.EventCreditLow}, outbox.Fact{Type: puntuale.EventSessionOffline, Subject: int64(c.Session)}, outbox.Fact{Type: puntuale.EventCampaignDone, Subject: 1})
	queue := func(now time.Time, nodes int) {
		t.Helper()
		storetest.Together(nodes, func(int) {
			if _, err := w.QueueNotices(ctx, now); err != nil {
				t.Error(err)
			}
		})
	}
	queue(storetest.Begin, 4)
	if _, sizes := queuedMails(w, owner); !slices.Equal(sizes, []int{1}) {
		t.Errorf("the owner's e-mails: %v", sizes)
	}
	if _, sizes := queuedMails(w, reader); sizes != nil {
		t.Errorf("a reader's e-mails: %v", sizes)
	}
	if _, sizes := queuedMails(w, asks); !slices.Equal(sizes, []int{1}) {
		t.Errorf("e-mails of who asks: %v", sizes)
	}
	queue(storetest.Begin.Add(puntuale.NoticeWait), 4)
	waiting, sizes := queuedMails(w, owner)
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
	// The e-mail must leave out notices that the user has read or does not want any more.
	if err := w.ReadNotices(ctx, owner, 0, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	if got := kinds(waiting[0]); !slices.Equal(got, []puntuale.NoticeKind{puntuale.NoticeDisconnected}) {
		t.Errorf("after a look at the bell it has %v", got)
	}
	if err := w.ChooseNotices(ctx, owner, puntuale.NoticeChoice{Off: puntuale.NoticesOf(puntuale.NoticeDisconnected)}); err != nil || kinds(waiting[0]) != nil {
		t.Errorf("after the choice it has %v, %v", kinds(waiting[0]), err)
	}
	// If another caller is already sending an e-mail, this e-mail must not change.
	if claimed, err := w.ClaimMails(ctx, storetest.Begin.Add(time.Hour), 10); err != nil || len(claimed) != 3 { // three e-mails, because the client's first owner also gets one
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	told(w, c, storetest.Begin.Add(time.Hour), outbox.Fact{Type: puntuale.EventCreditOut})
	queue(storetest.Begin.Add(time.Hour), 1)
	if _, sizes := queuedMails(w, owner); !slices.Equal(sizes, []int{2, 1}) {
		t.Errorf("the owner's e-mails: %v", sizes)
	}
	// A notice that is older than a day must get no e-mail.
	told(w, c, storetest.Begin.Add(2*time.Hour), outbox.Fact{Type: puntuale.EventCapReached})
	queue(storetest.Begin.Add(26*time.Hour), 1)
	if _, sizes := queuedMails(w, owner); !slices.Equal(sizes, []int{2, 1}) || w.Int("select count(*) from notice where mailed = 0") != 0 {
		t.Errorf("the owner's e-mails: %v", sizes)
	}
}

// testBadNoticeMail checks that all users get their e-mails if one user's waiting e-mail cannot be decoded. That e-mail
// then has the new notices only.
func testBadNoticeMail(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	bad, good := newReader(w, c, puntuale.Owner), newReader(w, c, puntuale.Owner)
	for i, kind := range []puntuale.EventType{puntuale.EventCreditLow, puntuale.EventCreditOut} {
		now := storetest.Begin.Add(time.Duration(i) * time.Hour)
		told(w, c, now, outbox.Fact{Type: kind})
		if _, err := w.QueueNotices(ctx, now); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			w.Exec("update mail set sealed = $2 where login_id = $1", bad.ID, []byte("{"))
		}
	}
	for u, want := range map[puntuale.UserID]int{bad.ID: 1, good.ID: 2} {
		if _, sizes := queuedMails(w, puntuale.User{ID: u}); !slices.Equal(sizes, []int{want}) {
			t.Errorf("user %d: %v, want one e-mail with %d", u, sizes, want)
		}
	}
}

// testNoticeMailsBounded checks that a user gets a limited number of e-mails a day, and then one e-mail with all other
// notices.
func testNoticeMailsBounded(t *testing.T, w *storetest.World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	u := newReader(w, c, puntuale.Owner)
	if err := w.ChooseNotices(ctx, u, puntuale.NoticeChoice{On: puntuale.NoticesOf(puntuale.NoticeCampaignDone)}); err != nil {
		t.Fatal(err)
	}
	const many = puntuale.NoticeMails + puntuale.MailedNotices + 5
	var sent int
	for i := range many {
		now := storetest.Begin.Add(time.Duration(i) * time.Minute)
		told(w, c, now, outbox.Fact{Type: puntuale.EventCampaignDone, Subject: int64(i)})
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
	waiting, sizes := queuedMails(w, u)
	if sent != puntuale.NoticeMails || !slices.Equal(sizes, []int{many - puntuale.NoticeMails}) || !waiting[0].Queued.Equal(storetest.Begin.Add(puntuale.NoticeMailPeriod)) {
		t.Fatalf("%d were sent; those that wait: %v", sent, sizes)
	}
	all, more, err := w.QueuedNotices(ctx, u, waiting[0])
	if err != nil || len(all) != puntuale.MailedNotices || more != 5 || all[len(all)-1].Subject != many-1 {
		t.Errorf("%d notices and %d more, %v", len(all), more, err)
	}
}
