package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// testKnownRecipients checks that a session knows a person from the first contact on. Each session must know only its
// own people. A session has met a person if the session wrote to the person before the person wrote.
func testKnownRecipients(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountTest)
	knows := func(client *Client, to string) bool {
		t.Helper()
		known, err := w.Knows(ctx, client.ID, client.Session, to)
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	met := func(to string, at time.Time) {
		t.Helper()
		if err := w.NoteKnown(ctx, c.ID, c.Session, to, at); err != nil {
			t.Fatal(err)
		}
	}
	if knows(c, phone) {
		t.Error("a stranger is known")
	}
	met(phone, Begin)
	met(phone, Begin.Add(time.Hour)) // the second contact must not change the time of the first contact
	met("+393330000002", Begin.Add(2*time.Hour))
	met("1203630@g.us", Begin.Add(3*time.Hour))
	met("+393330000003", time.UnixMicro(1)) // this person wrote first
	c.mustHear("+393330000004", Begin, Begin)
	for _, to := range []string{phone, "+393330000002", "1203630@g.us", "+393330000003", "+393330000004"} {
		if !knows(c, to) {
			t.Errorf("%s is a stranger", to)
		}
		if knows(other, to) {
			t.Errorf("another client knows %s", to)
		}
	}
	all, err := w.MetSince(ctx, c.ID, c.Session, Begin, 10)
	if err != nil || len(all) != 2 || !all[0].Equal(Begin.Add(2*time.Hour)) || !all[1].Equal(Begin) {
		t.Errorf("met since: %v, %v", all, err)
	}
	if all, err := w.MetSince(ctx, c.ID, c.Session, Begin, 1); err != nil || len(all) != 1 || !all[0].Equal(Begin.Add(2*time.Hour)) {
		t.Errorf("the latest: %v, %v", all, err)
	}
	existing, err := w.SessionsThere(ctx, []puntuale.SessionID{c.Session, other.Session, 999})
	if err != nil || !existing[c.Session] || !existing[other.Session] || existing[999] {
		t.Errorf("there: %v, %v", existing, err)
	}
	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, other.ID, Begin); err != nil {
		t.Fatal(err)
	}
	if existing, err := w.SessionsThere(ctx, []puntuale.SessionID{other.Session}); err != nil || existing[other.Session] {
		t.Errorf("a deleted client's session is there: %v", err)
	}
}

// testDeparted checks that the store keeps each part of a session's pace. It also checks that Departed returns when the
// session's messages left, latest first.
func testDeparted(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	pace := puntuale.Pace{PerMinute: 7, PerDay: 100, ColdPerMinute: 2, ColdPerDay: 9, Jitter: 5}
	if err := c.UpdateSession(ctx, c.Session, puntuale.SessionPatch{Pace: puntuale.Change[puntuale.Pace]{Set: true, To: pace}}); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Tenant.Session(ctx, c.Session); err != nil || s.Pace != pace {
		t.Errorf("%+v, %v", s.Pace, err)
	}
	if err := c.UpdateSession(ctx, 999, puntuale.SessionPatch{Pace: puntuale.Change[puntuale.Pace]{Set: true, To: pace}}); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("of a session that is not there: %v", err)
	}
	if all, err := w.Departed(ctx, c.ID, c.Session, Begin.Add(-24*time.Hour), 10); err != nil || len(all) != 0 {
		t.Errorf("nothing left: %v, %v", all, err)
	}
	node, ids := w.MustJoin(), c.MustStart(phone, Begin, 4)
	for i, id := range ids[:2] {
		c.MustSend(node, Begin.Add(time.Duration(i)*time.Hour), id)
	}
	c.MustEnd(node, Begin.Add(2*time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Detail: puntuale.Quoted("x")}, ids[2])
	for since, want := range map[time.Time][]time.Time{
		Begin:                  {Begin.Add(time.Hour), Begin},
		Begin.Add(time.Second): {Begin.Add(time.Hour)},
	} {
		all, err := w.Departed(ctx, c.ID, c.Session, since, 10)
		if err != nil || !slices.EqualFunc(all, want, time.Time.Equal) {
			t.Errorf("since %v: %v, %v, want %v", since, all, err, want)
		}
	}
	if all, err := w.Departed(ctx, c.ID, c.Session, Begin, 1); err != nil || len(all) != 1 || !all[0].Equal(Begin.Add(time.Hour)) {
		t.Errorf("the latest: %v, %v", all, err)
	}
}
