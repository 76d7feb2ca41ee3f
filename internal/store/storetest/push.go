package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// claims claims pushes at the time Begin + after. It checks which devices get a push, and returns the pushes.
func (p *post) claims(after time.Duration, want ...puntuale.Device) []puntuale.Push {
	p.w.t.Helper()
	all, err := p.w.ClaimPushes(context.Background(), Begin.Add(after), 100)
	if err != nil {
		p.w.t.Fatal(err)
	}
	var got, wanted []puntuale.DeviceID
	for _, c := range all {
		got = append(got, c.Device)
		if c.Client != p.ID || c.Session != p.session || string(c.Target) != fmt.Sprint("target ", c.Device) {
			p.w.t.Errorf("after %s: %+v", after, c)
		}
	}
	for _, d := range want {
		wanted = append(wanted, d.ID)
	}
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		p.w.t.Errorf("after %s: told %v, want %v", after, got, wanted)
	}
	return all
}

// sendAll makes a device send all messages that it holds or may take.
func (p *post) sendAll(d puntuale.Device, at time.Time) {
	p.w.t.Helper()
	for {
		p.take(d, at)
		held, err := p.HeldBy(context.Background(), p.session, d.ID)
		if err != nil {
			p.w.t.Fatal(err)
		}
		if len(held) == 0 {
			return
		}
		for _, h := range held {
			p.report(d, at, h, puntuale.Sent)
		}
	}
}

func (p *post) subscribe(d puntuale.Device) {
	p.w.t.Helper()
	if err := p.KeepPush(context.Background(), d.ID, fmt.Append(nil, "target ", d.ID)); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *post) endPush(c puntuale.Push, end puntuale.PushOutcome, wait time.Duration) {
	p.w.t.Helper()
	if err := p.w.EndPush(context.Background(), c, end, Begin.Add(wait)); err != nil {
		p.w.t.Fatal(err)
	}
}

// testPushes checks that devices get a push about messages that became due since the last push. A device must get at
// most one push a minute, and only about messages that it could take.
func testPushes(t *testing.T, w *World) {
	const s = time.Second
	p := w.post()
	a, b := p.link(false), p.link(false)
	p.link(false) // this device did not subscribe to pushes
	p.subscribe(a)
	p.claims(9 * s)
	p.start(number(1), Begin.Add(10*s))
	p.start(number(1), Begin.Add(15*s)) // waits for the first message, because it is to the same person
	p.claims(9 * s)
	p.claims(12*s, a)
	p.claims(13 * s)
	p.start(number(2), Begin.Add(20*s))
	p.subscribe(b)
	p.claims(30*s, b)
	p.claims(71 * s)
	p.claims(72*s, a)
	p.claims(600 * s) // no message became due since the last push
	p.sendAll(a, Begin.Add(600*s))
	p.start(number(1), Begin.Add(650*s))
	p.start(number(1), Begin.Add(651*s))
	p.take(b, Begin.Add(655*s))
	p.claims(660 * s) // the second message waits for the first, which another device holds
	p.sendAll(b, Begin.Add(661*s))
	p.start(number(3), Begin.Add(710*s), func(r *puntuale.StartRun) { r.Messages[0].ValidUntil = Begin.Add(720 * s) })
	p.claims(730 * s) // the message has expired

	night := p.start(number(4), Begin.Add(740*s), func(r *puntuale.StartRun) {
		r.Messages[0].Window = &puntuale.Window{From: "23:00", To: "23:30"}
	})
	p.claims(800 * s) // the window of the message is closed
	opens := p.Detail(night).Next.Sub(Begin)
	p.claims(opens - s)
	p.claims(opens+3*s, a, b)
}

// testPushEnds checks that a failed push is tried again, but not too early. If the push service reports that a
// subscription has ended, the store must delete the subscription, unless the device has a new one.
func testPushEnds(t *testing.T, w *World) {
	const s = time.Second
	p := w.post()
	a, b := p.link(false), p.link(false)
	p.subscribe(a)
	p.subscribe(b)
	p.start(number(1), Begin)
	all := p.claims(10*s, a, b)
	p.endPush(all[0], puntuale.PushFailed, 500*s)
	p.endPush(all[1], puntuale.PushArrived, 500*s)
	p.claims(499 * s)
	failing := all[0].Device
	if again := p.claims(500*s, puntuale.Device{ID: failing}); again[0].Failures != 1 {
		t.Errorf("%+v", again)
	} else {
		p.endPush(again[0], puntuale.PushFailed, 900*s)
	}
	if again := p.claims(900*s, puntuale.Device{ID: failing}); again[0].Failures != 2 {
		t.Errorf("%+v", again)
	} else {
		p.endPush(again[0], puntuale.PushArrived, 0)
	}
	p.start(number(2), Begin.Add(1000*s))
	all = p.claims(1010*s, a, b)
	if all[0].Failures+all[1].Failures != 0 {
		t.Errorf("%+v", all)
	}
	old := all[0]
	old.Target = []byte("target before")
	p.endPush(old, puntuale.PushUnsubscribed, 0)
	p.endPush(all[1], puntuale.PushUnsubscribed, 0)
	p.start(number(3), Begin.Add(2000*s))
	p.claims(2010*s, puntuale.Device{ID: old.Device})
	if err := p.UnlinkDevices(context.Background(), p.session, 0, Begin); err != nil {
		t.Fatal(err)
	}
	p.start(number(4), Begin.Add(3000*s))
	p.claims(3010 * s)
}

// testPushesTogether lets several servers claim pushes at the same time. No two servers may claim the same push.
func testPushesTogether(t *testing.T, w *World) {
	p := w.post()
	const devices = puntuale.MaxDevices
	for range devices {
		p.subscribe(p.link(false))
	}
	p.start(number(1), Begin)
	var mu sync.Mutex
	claimed := map[puntuale.DeviceID]int{}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10 {
				all, err := w.ClaimPushes(context.Background(), Begin.Add(10*time.Second), 3)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, c := range all {
					claimed[c.Device]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("device %d was told %d times", id, n)
		}
	}
	if len(claimed) != devices {
		t.Errorf("%d devices were told, want %d", len(claimed), devices)
	}
}

// claimMails claims e-mails at the time Begin + after. It also returns the users of these e-mails, sorted.
func claimMails(t *testing.T, w *World, after time.Duration, limit int) (all []puntuale.Mail, users []puntuale.UserID) {
	t.Helper()
	all, err := w.ClaimMails(context.Background(), Begin.Add(after), limit)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b puntuale.Mail) int { return int(a.User - b.User) })
	for _, m := range all {
		users = append(users, m.User)
	}
	return all, users
}

// testMails checks that an e-mail is claimed once, and that it is due again if its node dies. After a failure, it must
// wait as long as the failure requires. Only one e-mail of a kind may wait for a user. E-mails of a partner with many
// e-mails must alternate with those of other partners.
func testMails(t *testing.T, w *World) {
	ctx := context.Background()
	queue := func(instead puntuale.MailID, all ...puntuale.Mail) {
		t.Helper()
		if err := w.QueueMails(ctx, all, instead); err != nil {
			t.Fatal(err)
		}
	}
	mail := func(p puntuale.PartnerID, u puntuale.UserID) puntuale.Mail {
		return puntuale.Mail{Partner: p, User: u, Kind: puntuale.MailReset, Sealed: []byte{byte(u)}, Queued: Begin}
	}
	want := func(after time.Duration, users ...puntuale.UserID) []puntuale.Mail {
		t.Helper()
		all, got := claimMails(t, w, after, 100)
		if !slices.Equal(got, users) {
			t.Errorf("after %s: claimed %v, want %v", after, got, users)
		}
		return all
	}
	end := func(m puntuale.Mail, retryAt time.Time) {
		t.Helper()
		if err := w.EndMail(ctx, m, retryAt); err != nil {
			t.Fatal(err)
		}
	}
	oldest := func(queued time.Time) {
		t.Helper()
		if got, err := w.OldestMail(ctx); err != nil || !got.Equal(queued) {
			t.Errorf("the oldest e-mail is of %v, %v; want %v", got, err, queued)
		}
	}
	oldest(time.Time{})
	queue(0, puntuale.Mail{Partner: 1, Kind: puntuale.MailResetAsked, Queued: Begin})
	asked := want(0, 0)
	queue(asked[0].ID, mail(1, 11), mail(2, 12))
	first := want(0, 11, 12)
	if m := first[0]; m.Partner != 1 || m.Kind != puntuale.MailReset || string(m.Sealed) != "\x0b" || !m.Queued.Equal(Begin) || m.Attempts != 1 {
		t.Errorf("%+v", m)
	}
	want(puntuale.MailClaimTime - time.Second)
	second := want(puntuale.MailClaimTime, 11, 12) // after this time, the store assumes that the node of the first claim is dead
	end(first[0], time.Time{})                     // the result from that node comes too late and must have no effect
	end(second[0], Begin.Add(time.Hour))
	end(second[1], time.Time{})
	oldest(Begin) // it waits for the next attempt
	want(time.Hour - time.Second)
	queue(0, mail(1, 11)) // replaces the waiting e-mail for user 11
	if again := want(time.Hour, 11); again[0].Attempts != 1 {
		t.Errorf("%+v", again[0])
	} else {
		end(again[0], time.Time{})
	}
	oldest(time.Time{})
	var many []puntuale.Mail
	for u := range puntuale.UserID(50) {
		many = append(many, mail(1, 100+u))
	}
	queue(0, append(many, mail(2, 200), mail(3, 300))...)
	if all, users := claimMails(t, w, time.Hour, 6); len(all) != 6 || !slices.Contains(users, 200) || !slices.Contains(users, 300) {
		t.Errorf("claimed %v", users)
	}
	for range puntuale.MaxResets {
		queue(0, puntuale.Mail{Partner: 9, Kind: puntuale.MailResetAsked, Queued: Begin})
	}
	WantCode(t, w.QueueMails(ctx, []puntuale.Mail{{Partner: 9, Kind: puntuale.MailResetAsked, Queued: Begin}}, 0), puntuale.CodeRateLimited)
	queue(0, puntuale.Mail{Partner: 8, Kind: puntuale.MailResetAsked, Queued: Begin})
}

// testInvitationMails checks that the e-mail of an invitation is queued in the same transaction as the invitation. It
// must be removed with the invitation, and with the user.
func testInvitationMails(t *testing.T, w *World) {
	ctx := context.Background()
	p := w.Store.Partner(w.Partner)
	invitation := func(letter string) puntuale.Invitation {
		return puntuale.Invitation{Hash: Unique("h"), Expires: Begin.Add(time.Hour), Mail: &puntuale.Mail{Sealed: []byte(letter), Queued: Begin}}
	}
	waits := func(letters ...string) {
		t.Helper()
		all, err := w.ClaimMails(ctx, Begin, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range all {
			got = append(got, string(m.Sealed))
			if m.Kind != puntuale.MailInvitation || m.Partner != w.Partner || m.User == 0 {
				t.Errorf("%+v", m)
			}
			if err := w.EndMail(ctx, m, Begin); err != nil {
				t.Fatal(err)
			}
		}
		if slices.Sort(got); !slices.Equal(got, letters) {
			t.Errorf("%v wait, want %v", got, letters)
		}
	}
	for _, client := range []puntuale.ClientID{0, w.Client(puntuale.AccountFull).ID} {
		one, two := invitation("first"), invitation("second")
		id, err := p.CreateUser(ctx, puntuale.User{Client: client, Email: Unique("i") + "@example.com", Role: puntuale.Staff}, &one)
		if err != nil {
			t.Fatal(err)
		}
		waits("first")
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check(p.Invite(ctx, client, id, two))
		waits("second")
		check(p.Uninvite(ctx, client, id))
		waits()
		check(p.Invite(ctx, client, id, invitation("third")))
		_, err = p.UpdateUser(ctx, client, id, puntuale.UserPatch{Password: To("hash")}, nil)
		check(err)
		waits()
		check(p.Invite(ctx, client, id, invitation("fourth")))
		check(p.DeleteUser(ctx, client, id))
		waits()
	}
	c := w.Client(puntuale.AccountFull).ID
	last := invitation("last")
	if _, err := p.CreateUser(ctx, puntuale.User{Client: c, Email: Unique("i") + "@example.com", Role: puntuale.Staff}, &last); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteClient(ctx, c, Begin); err != nil {
		t.Fatal(err)
	}
	waits()
}

// testMailsTogether lets several servers claim e-mails at the same time. No two servers may get the same e-mail.
func testMailsTogether(t *testing.T, w *World) {
	const mails = 60
	var all []puntuale.Mail
	for u := range puntuale.UserID(mails) {
		all = append(all, puntuale.Mail{Partner: puntuale.PartnerID(u % 9), User: u + 1, Kind: puntuale.MailReset, Queued: Begin})
	}
	if err := w.QueueMails(context.Background(), all, 0); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[puntuale.MailID]int{}
	Together(4, func(int) {
		for range 30 {
			claimed, err := w.ClaimMails(context.Background(), Begin, 5)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			for _, m := range claimed {
				got[m.ID]++
			}
			mu.Unlock()
		}
	})
	for id, n := range got {
		if n != 1 {
			t.Errorf("e-mail %d was claimed %d times", id, n)
		}
	}
	if len(got) != mails {
		t.Errorf("%d were claimed, want %d", len(got), mails)
	}
}
