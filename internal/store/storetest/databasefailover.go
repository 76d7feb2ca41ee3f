package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"puntuale"
)

// fail changes the records as if a standby was promoted: the nodes joined on an earlier timeline than the present
// timeline.
func (w *World) fail(synchronous int) {
	w.t.Helper()
	w.Exec("update node set timeline = timeline - 1")
	w.Exec("update cluster set timeline = timeline - 1, synchronous = $1", synchronous)
}

// testTimelineFence checks that a lease is valid only on the timeline on which its node joined.
func testTimelineFence(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	ids := c.MustStart(phone, Begin.Add(time.Hour), 1) // this message is not due yet
	now := Begin.Add(2 * time.Hour)
	node, other := w.MustJoin(), w.MustJoin()
	if _, err := w.Assign(ctx, 0, node, []puntuale.SessionID{c.Session}); err != nil {
		t.Fatal(err)
	}
	for _, synchronous := range []int{1, 0} {
		w.fail(synchronous)
		claim := puntuale.Claim{Node: node, Token: Token(node), Now: now, Messages: c.Items(phone, 0, ids...)}
		if _, err := w.Claim(ctx, claim); !errors.Is(err, puntuale.ErrFenced) {
			t.Fatalf("claim after the failover: %v", err)
		}
		if err := w.Beat(ctx, node, time.Minute); !errors.Is(err, puntuale.ErrFenced) {
			t.Fatalf("beat after the failover: %v", err)
		}
		again := w.MustJoin()
		if n := w.Int("select count(*) from node"); n != 1 || again <= other {
			t.Fatalf("node %d is one of %d", again, n)
		}
		if n := w.Int("select count(*) from session where owner <> 0"); n != 0 {
			t.Fatalf("%d sessions are owned by nodes of the former timeline", n)
		}
		node, other = again, again
	}
	if d := c.Detail(ids[0]); d.Intent != 0 || d.Attempt != 0 {
		t.Fatalf("what was not due: %+v", d)
	}
	if _, granted := w.MustClaim(node, now, c.Items(phone, 0, ids...)...); granted[0] != puntuale.ClaimGranted {
		t.Fatalf("claim after joining again: %v", granted)
	}
}

// testQuarantine checks a failover that may have lost commits. Every due message that could have left must become
// uncertain, because it may have been sent. A message that the blacklist, a suspension or missing credits stopped stays
// open.
func testQuarantine(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	free, paid := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountTest)
	poor := w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.Credits = new(int64(2)) })
	idle := w.Client(puntuale.AccountFull)
	if _, err := w.Store.Partner(w.Partner).UpdateClient(ctx, idle.ID, puntuale.ClientPatch{Suspended: To(true)}, Begin); err != nil {
		t.Fatal(err)
	}
	old := free.MustStart(phone, Begin.Add(-3*time.Hour), 1)
	near := paid.MustStart(phone, Begin.Add(-2*time.Second), 3)
	many := poor.MustStart(phone, Begin.Add(-5*time.Second), 3)
	held := idle.MustStart(phone, Begin.Add(-5*time.Second), 1)
	later := free.MustStart(phone, Begin.Add(time.Minute), 1)
	blocked := free.MustStart("+393330000009", Begin, 1)
	if err := free.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393330000009", Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	flying := free.MustStart(phone, Begin, 1)
	token, _ := w.MustClaim(node, Begin, free.Items(phone, 0, flying...)...)

	w.fail(0)
	again := w.MustJoin()
	open := func(what string, c *Client, id puntuale.MessageID, want bool) {
		t.Helper()
		d := c.Detail(id)
		if (d.Intent == 0) != want || d.State != puntuale.Pending || d.Attempt != 0 {
			t.Errorf("%s: %+v", what, d.Message)
		}
		if !want && (d.Detail.IsZero() || d.IntentAt.IsZero() || d.Intent>>32 == int64(node) || d.Intent>>32 == int64(again)) {
			t.Errorf("%s: %+v", what, d.Message)
		}
	}
	open("overdue for long", free, old[0], false)
	for _, id := range near {
		open("just due", paid, id, false)
	}
	open("first of two credits", poor, many[0], false)
	open("second of two credits", poor, many[1], false)
	open("without a credit", poor, many[2], true)
	open("of a suspended client", idle, held[0], true)
	open("due later", free, later[0], true)
	open("to a blocked number", free, blocked[0], true)
	if d := free.Detail(flying[0]); d.Intent != token || d.Attempt != 1 {
		t.Errorf("in flight: %+v", d.Message)
	}
	if n := w.Int("select credits from client where id = $1", paid.ID); n != 97 {
		t.Errorf("%d credits left", n)
	}
	if n := w.Int("select count(*) from client k where k.credits <> (select sum(amount) from credit_entry e where e.client_id = k.id)"); n != 0 {
		t.Errorf("the ledgers of %d clients differ", n)
	}
	if n := w.DB.Meter.SetAside.Load(); n != 6 {
		t.Errorf("%d messages counted", n)
	}
	repeatQuarantined(t, w, paid, near, node, again)
}

// repeatQuarantined continues with the quarantined messages of a client that has credits. One message is repeated, one
// was stopped, and one is blocked by the blacklist.
func repeatQuarantined(t *testing.T, w *World, paid *Client, near []puntuale.MessageID, node, second puntuale.NodeID) {
	t.Helper()
	ctx := context.Background()
	// A stopped message must not be repeated. A repeat takes no credit, and its outcome is recorded like any other.
	if cancelled, err := paid.CancelMessages(ctx, near[1:2], Day, Begin); err != nil || len(cancelled) != 0 {
		t.Errorf("cancelled %v, %v", cancelled, err)
	}
	stopped := paid.Items(phone, paid.Detail(near[1]).Intent, near[1])
	if _, granted := w.MustClaim(second, Begin, stopped...); granted[0] != puntuale.ClaimStale {
		t.Errorf("repeat of a stopped one: %v", granted)
	}
	d := paid.Detail(near[0])
	repeat, granted := w.MustClaim(second, Begin, paid.Items(phone, d.Intent, near[0])...)
	if granted[0] != puntuale.ClaimGranted || !w.MustRecord(Begin, paid.Items(phone, 0, near[0])[0], repeat, puntuale.Outcome{Verdict: puntuale.Sent}) {
		t.Fatalf("repeat: %v", granted)
	}
	if d := paid.Detail(near[0]); d.State != puntuale.Completed {
		t.Errorf("repeated: %+v", d.Message)
	}
	if n := w.Int("select credits from client where id = $1", paid.ID); n != 97 {
		t.Errorf("%d credits left after the repeat", n)
	}
	// An outcome that a node of the lost server reports must still count.
	item := paid.Items(phone, 0, near[1])[0]
	if w.MustRecord(Begin, item, Token(node), puntuale.Outcome{Verdict: puntuale.Sent}) || paid.Detail(near[1]).State != puntuale.Completed {
		t.Errorf("late evidence: %+v", paid.Detail(near[1]).Message)
	}
	// The number is blacklisted before the repeat. No attempt of the message is known, so the message must not be
	// repeated.
	if err := paid.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: phone, Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	d = paid.Detail(near[2])
	if _, granted := w.MustClaim(second, Begin, paid.Items(phone, d.Intent, near[2])...); granted[0] != puntuale.ClaimBlacklisted {
		t.Errorf("repeat to a number blocked since: %v", granted)
	}
	if n := w.Int("select credit from message where id = $1", near[2]); n != 1 {
		t.Errorf("credit of the blocked: %d", n)
	}
}

// testQuarantineMarked uses a blacklist that contains only the mark of a number. A mark proves that the number was
// blacklisted before the message was accepted, so the message never left. The claim of the repeat must close the
// message and give the credit back.
func testQuarantineMarked(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	w.MustJoin()
	if err := c.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Mark: c.mark(phone), Added: Begin}, Day, nil); err != nil {
		t.Fatal(err)
	}
	c.mustErase(phone, Begin)
	ids := append(c.MustStart(phone, Begin, 2), c.MustStart("+393330000009", Begin, 1)...)
	w.fail(0)
	node := w.MustJoin()
	items := c.marked(append(c.Items(phone, c.Detail(ids[0]).Intent, ids[:2]...), c.Items("+393330000009", c.Detail(ids[2]).Intent, ids[2])...))
	if n := c.credits(); n != 97 {
		t.Errorf("%d credits after the failover", n)
	}
	_, granted := w.MustClaim(node, Begin.Add(time.Minute), items...)
	if granted[0] != puntuale.ClaimBlacklisted || granted[1] != puntuale.ClaimBlacklisted || granted[2] != puntuale.ClaimGranted {
		t.Fatalf("repeats: %v", granted)
	}
	if n, sum := c.credits(), w.Int("select sum(amount) from credit_entry where client_id = $1", c.ID); n != 99 || sum != n {
		t.Errorf("%d credits, the ledger says %d", n, sum)
	}
}

// testQuarantineTogether lets many nodes notice the failover at the same time. Any of them may die during the
// quarantine.
func testQuarantineTogether(t *testing.T, w *World) {
	ctx := context.Background()
	w.MustJoin()
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Credits = new(int64(5000)) })
	const all = 60
	for range all {
		c.MustStart(phone, Begin.Add(-time.Hour), 50)
	}
	w.fail(0)
	dying, cancel := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := w.DB.Open(t).Join(dying, time.Minute)
		gone <- err
	}()
	joined := make(chan error, 3)
	for range cap(joined) {
		s := w.DB.Open(t)
		go func() {
			_, err := s.Join(ctx, time.Minute)
			joined <- err
		}()
	}
	cancel()
	<-gone // wait until Join of the dying node has returned; its error does not matter
	for range cap(joined) {
		if err := <-joined; err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Int("select count(*) from message where intent > 0 and credit = 1"); n != all*50 {
		t.Errorf("%d messages set aside", n)
	}
	if n := w.DB.Meter.SetAside.Load(); n != all*50 {
		t.Errorf("%d messages counted", n)
	}
	if n := w.Int("select credits from client where id = $1", c.ID); n != 5000-all*50 {
		t.Errorf("%d credits left", n)
	}
	if n := w.Int("select count(*) from node"); n < 3 {
		t.Errorf("%d nodes", n)
	}
}

// testLeftBehind checks a failover after which the record of the timeline says that commits were synchronous. A node
// must not trust the record if one of the node's own heartbeats is missing.
func testLeftBehind(t *testing.T, w *World) {
	node := w.MustJoin()
	c := w.Client(puntuale.AccountFull)
	ids := c.MustStart(phone, Begin, 1)
	if err := w.Beat(context.Background(), node, time.Minute); err != nil {
		t.Fatal(err)
	}
	w.fail(1)
	w.Exec("update node set lease_until = lease_until - 1")
	w.MustJoin()
	if d := c.Detail(ids[0]); d.Intent == 0 {
		t.Errorf("not set aside: %+v", d.Message)
	}
}
