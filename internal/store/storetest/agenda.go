package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"puntuale"
)

func idsOf(all []puntuale.MessageDetail) []puntuale.MessageID {
	ids := make([]puntuale.MessageID, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	return ids
}

func testEnded(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	first := c.MustStart(phone, Begin, 3)
	c.MustSend(node, Begin.Add(time.Second), first[0])
	c.MustEnd(node, Begin.Add(2*time.Second), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no")}, first[1])
	strange := other.MustStart(phone, Begin, 1)
	other.MustSend(node, Begin.Add(time.Second), strange[0])

	got, err := c.Ended(ctx, Begin, Begin.Add(time.Hour), 0, 10)
	if err != nil || !slices.Equal(idsOf(got), []puntuale.MessageID{first[1], first[0]}) {
		t.Fatalf("ended = %v, %v", idsOf(got), err)
	}
	if got[0].Content.Text != "testo 1" || got[0].Reason.String() != "no" {
		t.Errorf("the newest = %+v", got[0])
	}
	got, err = c.Ended(ctx, Begin, Begin.Add(time.Hour), 5000, 10)
	if err != nil || !slices.Equal(idsOf(got), first[1:2]) {
		t.Errorf("failed = %v, %v", idsOf(got), err)
	}
	got, err = c.Ended(ctx, Begin, Begin.Add(time.Hour), 0, 1)
	if err != nil || !slices.Equal(idsOf(got), first[1:2]) {
		t.Errorf("one of them = %v, %v", idsOf(got), err)
	}
	if got, err = c.Ended(ctx, Begin.Add(time.Minute), Begin.Add(time.Hour), 0, 10); err != nil || len(got) > 0 {
		t.Errorf("later = %v, %v", idsOf(got), err)
	}
}

func testUpcoming(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	late := c.MustStart(phone, Begin.Add(2*time.Hour), 2)
	soon := c.MustStart("+393330000002", Begin.Add(time.Hour), 1)
	other.MustStart(phone, Begin.Add(time.Hour), 1)
	got, err := c.Upcoming(ctx, Begin, Begin.Add(24*time.Hour), 10)
	if err != nil || !slices.Equal(idsOf(got), append(soon, late...)) {
		t.Fatalf("upcoming = %v, %v", idsOf(got), err)
	}
	got, err = c.Upcoming(ctx, Begin.Add(time.Hour), Begin.Add(2*time.Hour), 10)
	if err != nil || !slices.Equal(idsOf(got), soon) {
		t.Errorf("within an hour = %v, %v", idsOf(got), err)
	}
	if got, err = c.Upcoming(ctx, Begin, Begin.Add(24*time.Hour), 1); err != nil || !slices.Equal(idsOf(got), soon) {
		t.Errorf("the first = %v, %v", idsOf(got), err)
	}
	counts, err := c.UpcomingCounts(ctx, Begin, Begin.Add(24*time.Hour))
	want := []puntuale.QuarterCount{{Begin: Begin.Add(time.Hour).Truncate(15 * time.Minute), N: 1}, {Begin: Begin.Add(2 * time.Hour).Truncate(15 * time.Minute), N: 2}}
	if err != nil || len(counts) != 2 || !counts[0].Begin.Equal(want[0].Begin) || counts[0].N != 1 || !counts[1].Begin.Equal(want[1].Begin) || counts[1].N != 2 {
		t.Errorf("counts = %v, %v, want %v", counts, err, want)
	}
	if got, all, err := c.CountMessages(ctx, puntuale.MessageFilter{Look: 1}, 10); err != nil || got == 0 || got == 3 || all {
		t.Errorf("count within a call = %d, %v, %v", got, all, err)
	}
	pending := puntuale.Pending
	if got, all, err := c.CountMessages(ctx, puntuale.MessageFilter{State: &pending, Look: 1}, 10); err != nil || got != 3 || !all {
		t.Errorf("count of all that wait = %d, %v, %v", got, all, err) // the index of waiting messages serves it, so no bound is needed
	}
	for limit, n := range map[int]int{10: 3, 2: 2} {
		if got, all, err := c.CountMessages(ctx, puntuale.MessageFilter{State: &pending}, limit); err != nil || got != n || all != (limit >= 3) {
			t.Errorf("count up to %d = %d, %v, %v", limit, got, all, err)
		}
		if got, _, err := c.CountMessages(ctx, puntuale.MessageFilter{}, limit); err != nil || got != n {
			t.Errorf("count all up to %d = %d, %v", limit, got, err)
		}
	}
}

// testVersion checks that each change of a client's messages changes the client's version. Changes of other clients'
// messages must not change it.
func testVersion(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	last := ""
	changes := func(what string, want bool) {
		t.Helper()
		v, err := c.Version(ctx)
		if err != nil || (v != last) != want {
			t.Errorf("after %s: %q, before %q, %v", what, v, last, err)
		}
		last = v
	}
	changes("nothing", true)
	changes("nothing again", false)
	ids := c.MustStart(phone, Begin, 3)
	changes("a start", true)
	other.MustStart(phone, Begin, 1)
	changes("another's start", false)
	c.MustSend(node, Begin.Add(time.Second), ids[0])
	changes("a send", true)
	if _, err := c.CancelMessages(ctx, ids[1:2], Day, Begin); err != nil {
		t.Fatal(err)
	}
	changes("a cancellation", true)
	c.MustResend(ids[2])
	changes("a re-send", true)
}

func testMove(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 2)
	move := func(id puntuale.MessageID) (puntuale.ResendResult, error) {
		r := c.Again(id)
		r.Move = true
		return c.Resend(ctx, r)
	}
	moved, err := move(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(moved.IDs[0]); d.State != puntuale.Pending || !d.Due.Equal(Begin.Add(time.Hour)) {
		t.Errorf("moved = %+v", d)
	}
	_, err = move(ids[0])
	WantCode(t, err, puntuale.CodeConflict)
	c.MustSend(node, Begin.Add(time.Second), ids[1])
	_, err = move(ids[1]) // refused: the message left before, and must not leave twice
	WantCode(t, err, puntuale.CodeConflict)
	again, err := c.ResentAs(ctx, c.Detail(ids[0]).Run, ids[0])
	if err != nil || !slices.Equal(again, moved.IDs) {
		t.Errorf("sent again as %v, %v", again, err)
	}
}

func testMessageEvents(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	ids := c.MustStart(phone, Begin, 1)
	c.MustEnd(w.MustJoin(), Begin.Add(time.Second), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no"), Detail: puntuale.Quoted("parole della rete")}, ids[0])
	all, err := c.MessageEvents(ctx, ids[0])
	if err != nil || len(all) != 1 || all[0].Kind != "refused" || !all[0].At.Equal(Begin.Add(time.Second)) {
		t.Errorf("events = %+v, %v", all, err)
	}
	if all, err = other.MessageEvents(ctx, ids[0]); err != nil || len(all) > 0 {
		t.Errorf("another's events = %+v, %v", all, err)
	}
}

func testSandboxChat(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	ids := c.MustStart(phone, Begin, 2)
	for i, id := range ids {
		m := puntuale.SandboxMessage{Client: c.ID, Message: id, ConnectorID: Unique("k"), Phone: phone, Content: puntuale.Content{Text: "ciao"}, Received: Begin.Add(time.Duration(i) * time.Second)}
		if err := w.Receive(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	chat, err := c.SandboxChat(ctx, c.Session, phone, 10)
	if err != nil || len(chat) != 2 || chat[0].Message != ids[1] || chat[0].Content.Text != "ciao" {
		t.Fatalf("chat = %+v, %v", chat, err)
	}
	if all, err := c.SandboxChat(ctx, c.Session, "", 1); err != nil || len(all) != 1 {
		t.Errorf("everybody = %+v, %v", all, err)
	}
	for name, got := range map[string]func() ([]puntuale.SandboxMessage, error){
		"another phone":   func() ([]puntuale.SandboxMessage, error) { return c.SandboxChat(ctx, c.Session, "+39333", 10) },
		"another session": func() ([]puntuale.SandboxMessage, error) { return c.SandboxChat(ctx, c.Session+99, phone, 10) },
		"another client": func() ([]puntuale.SandboxMessage, error) {
			return w.Client(puntuale.AccountFull).SandboxChat(ctx, c.Session, phone, 10)
		},
	} {
		if all, err := got(); err != nil || len(all) > 0 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}
