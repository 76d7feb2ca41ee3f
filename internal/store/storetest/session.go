package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
)

func (c *Client) mustSession(name string) puntuale.SessionID {
	c.w.t.Helper()
	id, err := c.CreateSession(context.Background(), puntuale.Session{Name: name, Type: puntuale.SendApp, Sandbox: true, Created: Begin}, nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return id
}

// mustStartOn starts n messages on a session other than the default session.
func (c *Client) mustStartOn(session puntuale.SessionID, n int) []puntuale.MessageID {
	c.w.t.Helper()
	run := c.Run(phone, Begin, n)
	run.Run.Session = session
	r, err := c.Start(context.Background(), run)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return r.IDs
}

// testDefaultPair checks that both sequences of a pair must exist. Deleting a sequence must remove it from the pair.
func testDefaultPair(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	stop, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "addio"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(start, stop puntuale.SequenceID) {
		t.Helper()
		if s, err := c.Tenant.Session(ctx, c.Session); err != nil || s.Start != start || s.Stop != stop {
			t.Errorf("pair = %v, %v, %v, want %v, %v", s.Start, s.Stop, err, start, stop)
		}
	}
	check(0, 0)
	err = c.SetDefaultPair(ctx, c.Session, 777, 999)
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeNotFound || len(e.Faults) != 2 || e.Faults[0].Location != "body.start" || e.Faults[1].Location != "body.stop" {
		t.Fatalf("neither is there: %+v", err)
	}
	WantCode(t, c.SetDefaultPair(ctx, 999, 0, 0), puntuale.CodeNotFound)
	WantCode(t, c.SetDefaultPair(ctx, 0, 0, 0), puntuale.CodeNotFound)
	check(0, 0)
	if err := c.SetDefaultPair(ctx, c.Session, c.Sequence, stop); err != nil {
		t.Fatal(err)
	}
	check(c.Sequence, stop)
	if err := c.DeleteSequence(ctx, c.Sequence, false, false, Begin); err != nil {
		t.Fatal(err)
	}
	check(0, stop)
	WantCode(t, c.SetDefaultPair(ctx, c.Session, c.Sequence, stop), puntuale.CodeNotFound)
	if err := c.SetDefaultPair(ctx, c.Session, stop, stop); err != nil {
		t.Fatal(err)
	}
	check(stop, stop)
	if err := c.SetDefaultPair(ctx, c.Session, 0, 0); err != nil {
		t.Fatal(err)
	}
	check(0, 0)
}

func testDeleteSession(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	second := c.mustSession("seconda")
	WantCode(t, c.DeleteSession(ctx, c.Session, true, 0, Begin), puntuale.CodeConflict) // conflict: a default session cannot be deleted
	WantCode(t, c.DeleteSession(ctx, 999, true, 0, Begin), puntuale.CodeNotFound)
	named, err := c.CreateSequence(ctx, puntuale.Sequence{Name: "x", Session: second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := c.mustStartOn(second, 3)
	err = c.DeleteSession(ctx, second, false, 0, Begin)
	if puntuale.CodeOf(err) != puntuale.CodeConflict || !strings.Contains(err.Error(), "session.pending 3") {
		t.Fatalf("with pending messages: %v", err)
	}
	if err := c.DeleteSession(ctx, second, true, 0, Begin); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if d := c.Detail(id); d.State != puntuale.Cancelled {
			t.Errorf("pending became %v", d.State)
		}
	}
	_, err = c.Tenant.Session(ctx, second)
	WantCode(t, err, puntuale.CodeNotFound)
	WantCode(t, c.DeleteSession(ctx, second, true, 0, Begin), puntuale.CodeNotFound)
	if _, s, err := c.StartInfo(ctx, named); err != nil || s.ID != c.Session {
		t.Fatalf("a sequence that named it uses %v, %v", s.ID, err)
	}
	run := c.Run(phone, Begin, 1)
	run.Run.Session = second
	_, err = c.Start(ctx, run)
	WantCode(t, err, puntuale.CodeNotFound)
	if _, sessions, err := w.Roster(ctx, 0); err != nil || slices.ContainsFunc(sessions, func(s puntuale.Session) bool { return s.ID == second }) {
		t.Fatalf("roster = %+v, %v", sessions, err)
	}
}

// testDeleteSessionMoves checks that messages that go to another session keep their due times.
func testDeleteSessionMoves(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	second, third := c.mustSession("seconda"), c.mustSession("terza")
	ids := c.mustStartOn(second, 3)
	before := c.Detail(ids[1])
	for _, wrong := range []puntuale.SessionID{999, other.Session, second} {
		err := c.DeleteSession(ctx, second, false, wrong, Begin)
		e, ok := errors.AsType[*puntuale.Error](err)
		if !ok || e.Code != puntuale.CodeNotFound || len(e.Faults) != 1 || e.Faults[0].Location != "query.move_to" {
			t.Fatalf("move to %d: %+v", wrong, err)
		}
	}
	if d := c.Detail(ids[1]); !reflect.DeepEqual(d.Message, before.Message) {
		t.Fatalf("after refusals: %+v", d.Message)
	}
	if err := c.DeleteSession(ctx, second, false, third, Begin); err != nil {
		t.Fatal(err)
	}
	before.Session = third
	if d := c.Detail(ids[1]); !reflect.DeepEqual(d.Message, before.Message) {
		t.Fatalf("moved = %+v, want %+v", d.Message, before.Message)
	}
	due, err := w.Due(ctx, begin(third), Begin.Add(time.Hour), 10)
	if err != nil || !slices.Equal(pickIDs(due), ids) {
		t.Fatalf("due = %v, %v", pickIDs(due), err)
	}
}

// testDeleteSessionInFlight checks that messages in flight stay on their session. Uncertain messages are given up, and
// later receipts for them must still count.
func testDeleteSessionInFlight(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	second := c.mustSession("seconda")
	ids := c.mustStartOn(second, 3)
	now := Begin.Add(time.Minute)
	items := c.Items(phone, 0, ids...)
	token, _ := w.MustClaim(node, now, items[:2]...)
	err := c.DeleteSession(ctx, second, true, 0, now)
	if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeBusy || e.RetryAfter <= 0 {
		t.Fatalf("while sending: %v", err)
	}
	w.MustRecord(now, items[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
	w.MustRecord(now, items[1], token, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: now.Add(time.Hour)})
	if err := c.DeleteSession(ctx, second, true, 0, now); err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(ids[1]); d.State != puntuale.Failed || d.Response().Code != puntuale.ReasonUncertain {
		t.Errorf("uncertain became %+v", d.Message)
	}
	if d := c.Detail(ids[2]); d.State != puntuale.Cancelled {
		t.Errorf("pending became %v", d.State)
	}
	w.MustRecord(now, items[1], token, puntuale.Outcome{Verdict: puntuale.Sent})
	if d := c.Detail(ids[1]); d.State != puntuale.Completed {
		t.Errorf("with evidence it became %v", d.State)
	}
}

// testGiveUp uses messages that a stopped server left in flight. If a caller is sure that no server is sending them, it
// gives them up. After that, the session can be deleted. Attempts that began later must not change.
func testGiveUp(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	for _, moveTo := range []puntuale.SessionID{0, c.Session} {
		second := c.mustSession("seconda")
		ids := c.mustStartOn(second, 3)
		now := Begin.Add(time.Minute)
		token, _ := w.MustClaim(node, now, c.Items(phone, 0, ids[0])...)
		late, _ := w.MustClaim(node, now.Add(time.Second), c.Items(phone, 0, ids[1])...)
		WantCode(t, other.GiveUp(ctx, second, now), puntuale.CodeNotFound)
		WantCode(t, c.DeleteSession(ctx, second, moveTo == 0, moveTo, now), puntuale.CodeBusy)
		if err := c.GiveUp(ctx, second, now); err != nil {
			t.Fatal(err)
		}
		if d := c.Detail(ids[0]); d.State != puntuale.Failed || d.Response().Code != puntuale.ReasonUncertain {
			t.Errorf("what was left became %+v", d.Message)
		}
		if d := c.Detail(ids[1]); d.State != puntuale.Pending || d.Intent != late {
			t.Errorf("what began later became %+v", d.Message)
		}
		WantCode(t, c.DeleteSession(ctx, second, moveTo == 0, moveTo, now), puntuale.CodeBusy)
		if err := c.GiveUp(ctx, second, now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteSession(ctx, second, moveTo == 0, moveTo, now); err != nil {
			t.Fatal(err)
		}
		w.MustRecord(now, c.Items(phone, 0, ids[0])[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
		if d := c.Detail(ids[0]); d.State != puntuale.Completed {
			t.Errorf("with evidence it became %v", d.State)
		}
	}
}

// testMovedMessageIsNotClaimedByOldSession uses a dispatcher that read a message before the message went to another
// session. The dispatcher must not send the message on the old session.
func testMovedMessageIsNotClaimedByOldSession(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	second := c.mustSession("seconda")
	item := c.Items(phone, 0, c.mustStartOn(second, 1)...)[0]
	if err := c.DeleteSession(context.Background(), second, false, c.Session, Begin); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		session puntuale.SessionID
		want    puntuale.ClaimAnswer
	}{{second, puntuale.ClaimStale}, {c.Session, puntuale.ClaimGranted}} {
		item.Session = test.session
		if _, granted := w.MustClaim(node, Begin, item); granted[0] != test.want {
			t.Errorf("session %d: %v, want %v", test.session, granted[0], test.want)
		}
	}
}

// testEndedLinkingPage checks that who began with an ended page is forgotten only when no pairing runs.
func testEndedLinkingPage(t *testing.T, w *World) {
	ctx := context.Background()
	c, node := w.Client(puntuale.AccountFull), w.MustJoin()
	w.mustOwn(node, c.Session)
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkUnlinked}, c.Session)
	offer := func(mark string, begun bool) {
		t.Helper()
		until := time.Time{}
		if mark != "" {
			until = Begin.Add(time.Hour)
		}
		if got, err := c.OfferLinkingPage(ctx, c.Session, mark, until); err != nil || got != begun {
			t.Errorf("somebody began with the earlier page: %v, %v, want %v", got, err, begun)
		}
	}
	mark := Unique("page")
	offer(mark, false)
	p, err := w.LinkingPage(ctx, mark)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.StartLinkingPage(ctx, p, Begin); err != nil {
		t.Fatal(err)
	}
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkPairing}, c.Session)
	offer("", true)
	offer("", true) // the pairing still runs
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkUnlinked}, c.Session)
	offer("", true)
	offer("", false)
	offer(Unique("page"), false)
}

// testLinkingPage checks that a session has one page at a time, and that the page works once, until its end, and not more
// often than allowed.
func testLinkingPage(t *testing.T, w *World) {
	ctx := context.Background()
	c, node := w.Client(puntuale.AccountFull), w.MustJoin()
	w.mustOwn(node, c.Session)
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkUnlinked}, c.Session)
	end := Begin.Add(time.Hour)
	offer := func(mark string, until time.Time, begun bool) {
		t.Helper()
		if got, err := c.OfferLinkingPage(ctx, c.Session, mark, until); err != nil || got != begun {
			t.Errorf("somebody began with the earlier page: %v, %v, want %v", got, err, begun)
		}
	}
	refused := func(session puntuale.SessionID, mark string) {
		t.Helper()
		_, err := c.OfferLinkingPage(ctx, session, mark, end)
		WantCode(t, err, puntuale.CodeConflict)
	}
	find := func(mark string, want time.Time, starts int) puntuale.LinkingPage {
		t.Helper()
		p, err := w.LinkingPage(ctx, mark)
		s, read := c.Tenant.Session(ctx, c.Session)
		if err != nil || read != nil || p != (puntuale.LinkingPage{Client: c.ID, Session: c.Session, Mark: mark, Until: want, Starts: starts}) || !s.Link.PageUntil.Equal(want) {
			t.Errorf("%+v, %v until %v, %v", p, err, s.Link.PageUntil, read)
		}
		return p
	}
	missing := func(marks ...string) {
		t.Helper()
		for _, mark := range marks {
			_, err := w.LinkingPage(ctx, mark)
			WantCode(t, err, puntuale.CodeNotFound)
		}
	}
	first, second, third := Unique("page"), Unique("page"), Unique("page")
	offer(first, end, false)
	p := find(first, end, 0)
	for n := range puntuale.MaxPageStarts {
		if err := w.StartLinkingPage(ctx, p, Begin); err != nil {
			t.Fatalf("start %d: %v", n, err)
		}
	}
	WantCode(t, w.StartLinkingPage(ctx, p, Begin), puntuale.CodeConflict)
	find(first, end, puntuale.MaxPageStarts)
	offer(second, end, true)
	missing(first, "", Unique("page"))
	WantCode(t, w.StartLinkingPage(ctx, p, Begin), puntuale.CodeNotFound)
	if err := w.StartLinkingPage(ctx, find(second, end, 0), Begin); err != nil {
		t.Fatal(err)
	}
	p = find(second, end, 1)
	WantCode(t, w.StartLinkingPage(ctx, p, end), puntuale.CodeNotFound)
	if _, err := w.LinkDevice(ctx, second, puntuale.Device{Name: "telefono"}, KeyHash(), Begin); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("a page's code links a device: %v", err)
	}
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkPairing}, c.Session)
	find(second, end, 1)
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkLinked}, c.Session)
	find(second, time.Time{}, 0)
	WantCode(t, w.StartLinkingPage(ctx, p, Begin), puntuale.CodeNotFound)
	refused(c.Session, third)
	w.mustSetLinks(node, Begin, puntuale.Link{State: puntuale.LinkUnlinked}, c.Session)
	WantCode(t, w.StartLinkingPage(ctx, p, Begin), puntuale.CodeNotFound) // it was used
	offer(third, end, false)                                              // a page that was used has no pairing
	offer("", time.Time{}, false)
	missing(second, third)
	posted := c.post()
	refused(posted.session, Unique("page")) // its code links devices
	if err := posted.OfferDevice(ctx, posted.session, []byte("code"), first, end); err != nil {
		t.Fatal(err)
	}
	missing(first)
	offer(third, end, false)
	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, c.ID, Begin); err != nil {
		t.Fatal(err)
	}
	missing(third)
}
