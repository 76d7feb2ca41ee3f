package storetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
)

// testClaimOnce checks that a message is granted only once, even if several stores claim it several times.
func testClaimOnce(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 10)
	now := Begin.Add(time.Minute)
	_, granted := w.MustClaim(node, now, c.Items(phone, 0, ids[0])...)
	if granted[0] != puntuale.ClaimGranted {
		t.Fatalf("granted = %v", granted)
	}
	if _, granted = w.MustClaim(node, now, c.Items(phone, 0, ids[0])...); granted[0] != puntuale.ClaimStale {
		t.Fatalf("granted again = %v", granted)
	}
	second := w.DB.Open(t)
	var grants atomic.Int64
	Together(4, func(i int) {
		queue := puntuale.Queue(w.Store)
		if i%2 == 1 {
			queue = second
		}
		got, err := queue.Claim(context.Background(), puntuale.Claim{Node: node, Token: Token(node), Now: now, Messages: c.Items(phone, 0, ids[1:]...)})
		if err != nil {
			t.Error(err)
		}
		for _, g := range got {
			if g == puntuale.ClaimGranted {
				grants.Add(1)
			}
		}
	})
	if grants.Load() != 9 {
		t.Fatalf("9 messages were granted %d times", grants.Load())
	}
	if n := w.Int("select sum(attempt) from message"); n != 10 {
		t.Fatalf("%d attempts counted", n)
	}
}

func testClaimConditions(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 4) // these messages are due after 0, 1, 2 and 3 s
	cancelled := c.MustStart("+393330000000", Begin, 1)
	if _, err := c.Stop(ctx, c.Sequence, []string{"+393330000000"}, "", Day, Begin); err != nil {
		t.Fatal(err)
	}
	items := c.Items(phone, 0, ids[3], ids[0], cancelled[0])
	items = append(items, other.Items(phone, 0, ids[1])...) // a message that belongs to another client
	items = append(items, c.Items(phone, 7, ids[2])...)     // the intent of this message is wrong
	items = append(items, puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: 999, ID: ids[1]}})
	token, granted := w.MustClaim(node, Begin.Add(2*time.Second), items...)
	want := []puntuale.ClaimAnswer{puntuale.ClaimStale, puntuale.ClaimGranted, puntuale.ClaimStale, puntuale.ClaimStale, puntuale.ClaimStale, puntuale.ClaimStale}
	if !slices.Equal(granted, want) {
		t.Fatalf("granted = %v, want %v", granted, want)
	}
	d := c.Detail(ids[0])
	if d.Intent != token || !d.IntentAt.Equal(Begin.Add(2*time.Second)) || d.Attempt != 1 || d.Repeats != 0 || d.State != puntuale.Pending {
		t.Fatalf("detail = %+v", d)
	}
	if _, granted := w.MustClaim(node, d.ValidUntil.Add(time.Second), c.Items(phone, 0, ids[1])...); granted[0] != puntuale.ClaimStale {
		t.Fatalf("past its validity: %v", granted)
	}
	if got, err := w.Claim(ctx, puntuale.Claim{Node: node, Token: Token(node), Now: Begin}); err != nil || len(got) != 0 {
		t.Fatalf("nothing claimed: %v, %v", got, err)
	}
}

func testClaimHeld(t *testing.T, w *World) {
	node := w.MustJoin()
	for name, hold := range map[string]string{
		"suspended": "update client set suspended = 1 where id = $1",
		"expired":   "update client set expires_at = 1 where id = $1",
		"deleted":   "update client set deleted_at = 1 where id = $1",
		"no credit": "update client set credits = 0 where id = $1",
	} {
		c := w.Client(puntuale.AccountFull)
		ids := c.MustStart(phone, Begin, 1)
		before := c.Detail(ids[0])
		w.Exec(hold, c.ID)
		_, granted := w.MustClaim(node, Begin, c.Items(phone, 0, ids[0])...)
		if granted[0] != puntuale.ClaimHeld {
			t.Errorf("%s: %v", name, granted)
		}
		if after := c.Detail(ids[0]); !reflect.DeepEqual(after.Message, before.Message) {
			t.Errorf("%s: %+v, before %+v", name, after.Message, before.Message)
		}
	}
}

func testClaimBlacklisted(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountTest), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids, free := c.MustStart(phone, Begin, 1), c.MustStart("+393330000000", Begin, 1)
	if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: phone, Reason: "ha chiesto", Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	if err := other.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393330000000", Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	_, granted := w.MustClaim(node, Begin.Add(time.Second), append(c.Items(phone, 0, ids...), c.Items("+393330000000", 0, free...)...)...)
	if !slices.Equal(granted, []puntuale.ClaimAnswer{puntuale.ClaimBlacklisted, puntuale.ClaimGranted}) {
		t.Fatalf("granted = %v", granted)
	}
	d := c.Detail(ids[0])
	if d.State != puntuale.Blacklisted || d.Attempt != 0 || d.Response().Code != puntuale.ReasonBlacklisted || !d.Done.Equal(Begin.Add(time.Second)) || !d.LeftAt().IsZero() {
		t.Fatalf("detail = %+v", d)
	}
	if left := w.Int("select credits from client where id = $1", c.ID); left != 99 {
		t.Fatalf("%d credits left", left)
	}
	if n := w.Int("select outcome from message where id = $1", ids[0]); n != 2 {
		t.Fatalf("outcome %d", n)
	}
}

// testTakeover claims a message with the token of its unanswered attempt. Such a claim must take over this attempt. It
// takes no second credit, and keeps the time of the first attempt.
func testTakeover(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.Credits = new(int64(1)) })
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 1)
	first, _ := w.MustClaim(node, Begin, c.Items(phone, 0, ids...)...)
	later := Begin.Add(10 * time.Second)
	if _, granted := w.MustClaim(node, later, c.Items(phone, first+1000, ids...)...); granted[0] != puntuale.ClaimStale {
		t.Fatalf("another token: %v", granted)
	}
	second, granted := w.MustClaim(node, later, c.Items(phone, first, ids...)...)
	if granted[0] != puntuale.ClaimGranted {
		t.Fatalf("takeover: %v", granted)
	}
	d := c.Detail(ids[0])
	if d.Intent != second || d.Attempt != 2 || d.Repeats != 1 || !d.IntentAt.Equal(Begin) || d.Generation != 0 {
		t.Fatalf("detail = %+v", d)
	}
	if left := w.Int("select credits from client where id = $1", c.ID); left != 0 {
		t.Fatalf("%d credits left", left)
	}
	if !w.MustRecord(later, c.Items(phone, 0, ids...)[0], second, puntuale.Outcome{Verdict: puntuale.Sent}) {
		t.Fatal("not applied")
	}
}

func testFleet(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	a, b := w.MustJoin(), w.MustJoin()
	if a == b || a <= 0 {
		t.Fatalf("nodes %d and %d", a, b)
	}
	moved, err := w.Assign(ctx, 0, a, []puntuale.SessionID{c.Session, 999})
	if err != nil || !slices.Equal(moved, []puntuale.SessionID{c.Session}) {
		t.Fatalf("assign = %v, %v", moved, err)
	}
	if moved, err = w.Assign(ctx, 0, b, []puntuale.SessionID{c.Session}); err != nil || len(moved) != 0 {
		t.Fatalf("assign what is taken = %v, %v", moved, err)
	}
	roster := func(node puntuale.NodeID) (int, []puntuale.Session) {
		nodes, sessions, err := w.Roster(ctx, node)
		if err != nil {
			t.Fatal(err)
		}
		return len(nodes), sessions
	}
	if n, s := roster(a); n != 2 || len(s) != 1 || s[0].ID != c.Session || s[0].Owner != a || !s[0].Sandbox {
		t.Fatalf("roster of the owner: %d, %+v", n, s)
	}
	if _, s := roster(b); len(s) != 0 {
		t.Fatalf("roster of the other: %+v", s)
	}
	if freed, err := w.Reap(ctx); err != nil || freed != 0 {
		t.Fatalf("reap of the living = %d, %v", freed, err)
	}
	w.Exec("update node set lease_until = 1 where id = $1", a)
	if freed, err := w.Reap(ctx); err != nil || freed != 1 {
		t.Fatalf("reap = %d, %v", freed, err)
	}
	if err := w.Beat(ctx, a, time.Minute); !errors.Is(err, puntuale.ErrFenced) {
		t.Fatalf("beat of the dead = %v", err)
	}
	if _, err := w.Assign(ctx, 0, a, []puntuale.SessionID{c.Session}); !errors.Is(err, puntuale.ErrFenced) {
		t.Fatalf("assign to the dead = %v", err)
	}
	if err := w.Beat(ctx, b, time.Minute); err != nil {
		t.Fatal(err)
	}
	if moved, err = w.Assign(ctx, 0, b, []puntuale.SessionID{c.Session}); err != nil || len(moved) != 1 {
		t.Fatalf("assign = %v, %v", moved, err)
	}
	if err := w.Leave(ctx, b); err != nil {
		t.Fatal(err)
	}
	if n, s := roster(0); n != 0 || len(s) != 1 || s[0].Owner != 0 {
		t.Fatalf("roster after all left: %d, %+v", n, s)
	}
}

// testFence checks that a node that has lost its lease cannot claim or settle messages.
func testFence(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	ids := c.MustStart(phone, Begin, 2)
	dead, alive := w.MustJoin(), w.MustJoin()
	before := c.Detail(ids[0])
	check := func(what string) {
		t.Helper()
		got, err := w.Claim(ctx, puntuale.Claim{Node: dead, Token: Token(dead), Now: Begin, Messages: c.Items(phone, 0, ids...)})
		if !errors.Is(err, puntuale.ErrFenced) || len(got) != 0 {
			t.Fatalf("%s: claim = %v, %v", what, got, err)
		}
		err = w.Settle(ctx, dead, Begin, []puntuale.Settlement{{MessageRef: c.Items(phone, 0, ids...)[0].MessageRef, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}})
		if !errors.Is(err, puntuale.ErrFenced) {
			t.Fatalf("%s: settle = %v", what, err)
		}
		if after := c.Detail(ids[0]); !reflect.DeepEqual(after.Message, before.Message) {
			t.Fatalf("%s: %+v, before %+v", what, after.Message, before.Message)
		}
		if left := w.Int("select credits from client where id = $1", c.ID); left != 100 {
			t.Fatalf("%s: %d credits left", what, left)
		}
	}
	w.Exec("update node set lease_until = 1 where id = $1", dead)
	check("expired")
	if _, err := w.Reap(ctx); err != nil {
		t.Fatal(err)
	}
	check("reaped")
	if _, granted := w.MustClaim(alive, Begin, c.Items(phone, 0, ids[0])...); granted[0] != puntuale.ClaimGranted {
		t.Fatalf("the living: %v", granted)
	}
}

// testReapWaitsForClaims checks that a node is not removed while one of its claims is open. Otherwise a row of that
// claim could appear after the removal. No other call may wait for the claim.
func testReapWaitsForClaims(t *testing.T, w *World) {
	ctx := context.Background()
	node, other := w.MustJoin(), w.MustJoin()
	c := w.Client(puntuale.AccountTest)
	if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
		t.Fatal(err)
	}
	claim, err := w.DB.SQL.BeginTx(ctx, nil) // this transaction stands for a running claim
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim.Exec("select 1 from node where id = $1 for key share", node); err != nil {
		t.Fatal(err)
	}
	if err := w.Beat(ctx, node, -time.Minute); err != nil { // this call must not wait for claims
		t.Fatal(err)
	}
	second := w.DB.Open(t)
	gone := func(open bool) {
		t.Helper()
		for _, s := range []puntuale.Fleet{w.Store, second} {
			if err := s.Beat(ctx, other, time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Reap(ctx); err != nil {
				t.Fatal(err)
			}
		}
		nodes, owned := w.Int("select count(*) from node where id = $1", node), w.Int("select count(*) from session where owner = $1", node)
		if (nodes > 0) != open || (owned > 0) != open {
			t.Fatalf("claim open %v: %d nodes with %d sessions", open, nodes, owned)
		}
	}
	gone(true)
	if err := claim.Commit(); err != nil {
		t.Fatal(err)
	}
	gone(false)
	if err := w.Beat(ctx, other, time.Minute); err != nil {
		t.Fatal(err)
	}
}
