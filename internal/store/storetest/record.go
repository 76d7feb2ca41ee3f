package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// attempt starts one message to the phone and claims it.
func (c *Client) attempt(node puntuale.NodeID, phone string) (puntuale.ClaimItem, int64) {
	c.w.t.Helper()
	item := c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)[0]
	token, granted := c.w.MustClaim(node, Begin, item)
	if granted[0] != puntuale.ClaimGranted {
		c.w.t.Fatalf("granted = %v", granted)
	}
	return item, token
}

func (c *Client) credits() int64 {
	c.w.t.Helper()
	return c.w.Int("select credits from client where id = $1", c.ID)
}

func testOutcomes(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	sent, sentToken := c.attempt(node, phone)
	refused, refusedToken := c.attempt(node, "+393330000000")
	if c.credits() != 98 {
		t.Fatalf("%d credits left", c.credits())
	}
	now := Begin.Add(time.Second)
	applied, err := w.Record(ctx, now, []puntuale.Result{
		{MessageRef: refused.MessageRef, Token: refusedToken, Outcome: puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero non valido"), Detail: puntuale.Quoted("131026")}},
		{MessageRef: puntuale.MessageRef{Client: c.ID, ID: 1}, Token: 1, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}},
		{MessageRef: sent.MessageRef, Token: sentToken, Outcome: puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid.1")}},
	})
	if err != nil || !slices.Equal(applied, []bool{true, false, true}) {
		t.Fatalf("applied = %v, %v", applied, err)
	}
	d := c.Detail(sent.ID)
	if d.State != puntuale.Completed || !d.LeftAt().Equal(Begin) || !d.Done.Equal(now) || d.Detail.String() != "wamid.1" || d.Response().Code != puntuale.ReasonCompleted {
		t.Fatalf("sent = %+v", d)
	}
	d = c.Detail(refused.ID)
	if d.State != puntuale.Failed || !d.LeftAt().IsZero() || d.Detail.String() != "131026" || d.Response().String() != "Numero non valido" {
		t.Fatalf("refused = %+v", d)
	}
	if c.credits() != 99 {
		t.Fatalf("%d credits left", c.credits())
	}
	if w.MustRecord(now, sent, sentToken, puntuale.Outcome{Verdict: puntuale.Refused}) {
		t.Fatal("applied to a closed message")
	}
	if d := c.Detail(sent.ID); d.State != puntuale.Completed || c.credits() != 99 {
		t.Fatalf("after a second outcome: %+v, %d credits", d, c.credits())
	}
	if applied, err := w.Record(ctx, now, nil); err != nil || len(applied) != 0 {
		t.Fatalf("nothing = %v, %v", applied, err)
	}
}

func testRetry(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	item, token := c.attempt(node, phone)
	next := Begin.Add(5 * time.Second)
	if !w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: next, Reason: puntuale.Quoted("Numero occupato"), Failed: true}) {
		t.Fatal("not applied")
	}
	d := c.Detail(item.ID)
	if d.State != puntuale.Pending || d.Intent != 0 || !d.Next.Equal(next) || !d.Due.Equal(Begin) || d.Attempt != 1 || d.Response().Code != puntuale.ReasonPending {
		t.Fatalf("detail = %+v", d)
	}
	if c.credits() != 100 {
		t.Fatalf("%d credits left", c.credits())
	}
	if _, granted := w.MustClaim(node, next.Add(-time.Millisecond), item); granted[0] != puntuale.ClaimStale {
		t.Fatalf("before its time: %v", granted)
	}
	token, granted := w.MustClaim(node, next, item)
	if granted[0] != puntuale.ClaimGranted || c.credits() != 99 {
		t.Fatalf("second attempt: %v, %d credits", granted, c.credits())
	}
	if d := c.Detail(item.ID); d.Attempt != 2 || !d.IntentAt.Equal(next) {
		t.Fatalf("detail = %+v", d)
	}
	// The message did not cause this failure, so the attempt must not count.
	if !w.MustRecord(next, item, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: next.Add(time.Second)}) || c.Detail(item.ID).Attempt != 1 {
		t.Fatalf("detail = %+v", c.Detail(item.ID))
	}
	stopped, err := c.Stop(context.Background(), c.Sequence, []string{phone}, "", Day, next)
	if err != nil || !slices.Equal(stopped.IDs, []puntuale.MessageID{item.ID}) || c.credits() != 100 {
		t.Fatalf("stop in retry = %+v, %v, %d credits", stopped, err, c.credits())
	}
}

func testUncertain(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	item, token := c.attempt(node, phone)
	look := Begin.Add(24 * time.Hour)
	if !w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: look, Detail: puntuale.Quoted("esito incerto")}) {
		t.Fatal("not applied")
	}
	d := c.Detail(item.ID)
	if d.State != puntuale.Pending || d.Intent != token || !d.Next.Equal(look) || !d.Planned().Equal(Begin) || d.Detail.String() != "esito incerto" || c.credits() != 99 {
		t.Fatalf("detail = %+v, %d credits", d, c.credits())
	}
	if done, err := CancelPending(context.Background(), c, nil, true, Day, Begin); err != nil || len(done) != 0 {
		t.Fatalf("cancelled %v, %v", done, err)
	}
	// The message is given up at its deadline. The credit must stay spent, and the message must show the time of its
	// attempt.
	err := w.Settle(context.Background(), node, look, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}})
	if err != nil {
		t.Fatal(err)
	}
	d = c.Detail(item.ID)
	if d.State != puntuale.Failed || !d.Next.Equal(Begin) || d.Response().Code != puntuale.ReasonUncertain || d.Detail.String() != "esito incerto" || c.credits() != 99 {
		t.Fatalf("detail = %+v, %d credits", d, c.credits())
	}
}

// testLateReceipt checks that a receipt of a delivery always counts, whatever happened to the attempt.
func testLateReceipt(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	retry := puntuale.Outcome{Verdict: puntuale.Retry, Next: Begin, Failed: true}
	for name, c := range map[string]struct {
		meanwhile func(c *Client, item puntuale.ClaimItem, token int64)
		state     puntuale.State
		credits   int64
	}{
		"open again": {func(_ *Client, item puntuale.ClaimItem, token int64) {
			w.MustRecord(Begin, item, token, retry)
		}, puntuale.Completed, 99},
		"another attempt": {func(_ *Client, item puntuale.ClaimItem, token int64) {
			w.MustRecord(Begin, item, token, retry)
			w.MustClaim(node, Begin, item)
		}, puntuale.Completed, 99},
		"taken over": {func(_ *Client, item puntuale.ClaimItem, token int64) {
			item.Intent = token
			w.MustClaim(node, Begin, item)
		}, puntuale.Completed, 99},
		"given up": {func(_ *Client, item puntuale.ClaimItem, token int64) {
			if err := w.Settle(ctx, node, Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}}); err != nil {
				t.Error(err)
			}
		}, puntuale.Completed, 99},
		"refused": {func(_ *Client, item puntuale.ClaimItem, token int64) {
			w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("no")})
		}, puntuale.Failed, 100},
		"cancelled": {func(c *Client, item puntuale.ClaimItem, token int64) {
			w.MustRecord(Begin, item, token, retry)
			if _, err := CancelPending(ctx, c, nil, true, Day, Begin); err != nil {
				t.Error(err)
			}
		}, puntuale.Cancelled, 100},
	} {
		client := w.Client(puntuale.AccountTest)
		item, token := client.attempt(node, phone)
		c.meanwhile(client, item, token)
		now := Begin.Add(time.Hour)
		if w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("ricevuta")}) {
			t.Errorf("%s: applied as it stands", name)
		}
		d := client.Detail(item.ID)
		if d.State != c.state || client.credits() != c.credits {
			t.Errorf("%s: %+v, %d credits", name, d, client.credits())
		}
		if d.State == puntuale.Completed && (!d.Done.Equal(now) || d.Detail.String() != "ricevuta" || d.LeftAt().IsZero() || d.Response().Code != puntuale.ReasonCompleted) {
			t.Errorf("%s: %+v", name, d)
		}
		if n := w.Int("select count(*) from event where message_id = $1 and kind in ('merge', 'late sent')", item.ID); n != 1 {
			t.Errorf("%s: %d events", name, n)
		}
	}
}

func testSettle(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 4)
	refs := c.Items(phone, 0, ids...)
	w.MustClaim(node, Begin.Add(time.Hour), refs[3])
	later := Begin.Add(2 * time.Hour)
	err := w.Settle(ctx, node, Begin, []puntuale.Settlement{
		{MessageRef: refs[2].MessageRef, Intent: 5, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}, // the dispatcher saw an intent that is wrong now
		{MessageRef: refs[1].MessageRef, State: puntuale.Pending, Next: later},
		{MessageRef: refs[0].MessageRef, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonNotLinked), Detail: puntuale.Quoted("mai collegata")},
		{MessageRef: refs[3].MessageRef, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}, // the message is in flight now
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(ids[0]); d.State != puntuale.Failed || d.Reason.Code != puntuale.ReasonNotLinked || d.Detail.String() != "mai collegata" || d.Attempt != 0 || !d.Next.Equal(Begin) {
		t.Errorf("failed = %+v", d)
	}
	if d := c.Detail(ids[1]); d.State != puntuale.Pending || !d.Next.Equal(later) || !d.Due.Equal(Begin.Add(time.Second)) {
		t.Errorf("postponed = %+v", d)
	}
	if d := c.Detail(ids[2]); d.State != puntuale.Pending || !d.Next.Equal(Begin.Add(2*time.Second)) {
		t.Errorf("left alone = %+v", d)
	}
	if d := c.Detail(ids[3]); d.State != puntuale.Pending || d.Intent <= 0 {
		t.Errorf("in flight = %+v", d)
	}
	if err := w.Settle(ctx, 0, Begin, []puntuale.Settlement{{MessageRef: refs[2].MessageRef, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}}); err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(ids[2]); d.State != puntuale.Failed {
		t.Errorf("without a lease = %+v", d)
	}
}

// testCreditsRunOut checks a client that has too few credits. The messages that are due first must get them.
func testCreditsRunOut(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.Credits = new(int64(2)) })
	rich := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	late := c.MustStart(phone, Begin.Add(time.Minute), 1)
	early := c.MustStart("+393330000000", Begin, 3)
	free := rich.MustStart(phone, Begin, 1)
	items := append(c.Items(phone, 0, late...), c.Items("+393330000000", 0, early[1], early[2], early[0])...)
	items = append(items, rich.Items(phone, 0, free...)...)
	before := c.Detail(early[2])
	_, granted := w.MustClaim(node, Begin.Add(time.Hour), items...)
	want := []puntuale.ClaimAnswer{puntuale.ClaimHeld, puntuale.ClaimGranted, puntuale.ClaimHeld, puntuale.ClaimGranted, puntuale.ClaimGranted}
	if !slices.Equal(granted, want) {
		t.Fatalf("granted = %v, want %v", granted, want)
	}
	if after := c.Detail(early[2]); !reflect.DeepEqual(after.Message, before.Message) {
		t.Fatalf("held = %+v, before %+v", after.Message, before.Message)
	}
	if c.credits() != 0 {
		t.Fatalf("%d credits left", c.credits())
	}
	ledger(t, w)
}

// ledger checks that the entries of each client's credit ledger add up to the client's credits.
func ledger(t *testing.T, w *World) {
	t.Helper()
	if n := w.Int(`select count(*) from client k where k.credits is not null
 and k.credits <> (select coalesce(sum(e.amount), 0) from credit_entry e where e.client_id = k.id)`); n != 0 {
		t.Errorf("the ledger of %d clients does not add up", n)
	}
}

// testCreditsAddUp runs many claims and outcomes at the same time, with credits for only some of the messages.
func testCreditsAddUp(t *testing.T, w *World) {
	ctx := context.Background()
	const credits, workers = 9, 5
	node := w.MustJoin()
	clients := make([]*Client, 3)
	ids := make([][]puntuale.MessageID, len(clients))
	for i := range clients {
		clients[i] = w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.Credits = new(int64(credits)) })
		ids[i] = clients[i].MustStart(phone, Begin, 24)
	}
	verdicts := []puntuale.Verdict{puntuale.Sent, puntuale.Retry, puntuale.Refused, puntuale.Uncertain}
	second := w.DB.Open(t)
	Together(workers, func(worker int) {
		s := w.Store
		if worker%2 == 1 {
			s = second
		}
		for round := range 4 {
			var items []puntuale.ClaimItem
			for i, c := range clients {
				items = append(items, c.Items(phone, 0, ids[i]...)...)
			}
			token := Token(node)
			granted, err := s.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: Begin.Add(time.Hour), Messages: items})
			if err != nil {
				t.Error(err)
				return
			}
			var results []puntuale.Result
			for i, g := range granted {
				if g == puntuale.ClaimGranted {
					o := puntuale.Outcome{Verdict: verdicts[(i+round+worker)%4], Next: Begin.Add(time.Hour)}
					results = append(results, puntuale.Result{MessageRef: items[i].MessageRef, Token: token, Outcome: o})
				}
			}
			if _, err := s.Record(ctx, Begin.Add(time.Hour), results); err != nil {
				t.Error(err)
			}
		}
	})
	ledger(t, w)
	for _, c := range clients {
		left := c.credits()
		held := w.Int("select count(*) from message where client_id = $1 and credit = 1", c.ID)
		if left < 0 || left+held != credits {
			t.Errorf("%d credits left and %d held of %d", left, held, credits)
		}
		if n := w.Int("select count(*) from message where client_id = $1 and credit = 1 and state = 2", c.ID); n != 0 {
			t.Errorf("%d refused messages hold a credit", n)
		}
	}
}

// shape is the part of a message's row on which the possible moves depend.
type shape struct {
	state  puntuale.State
	intent int64 // only the sign of the intent: -1, 0 or 1
	gaveUp bool
}

func (s shape) String() string { return fmt.Sprintf("%v/%d/%v", s.state, s.intent, s.gaveUp) }

// testMoves checks that the store makes exactly the moves that the documentation of package store lists. The CHECK
// constraints of the table must allow exactly these moves.
func testMoves(t *testing.T, w *World) {
	node := w.MustJoin()
	for from, make := range movesFrom(t, w, node) {
		for name, verb := range movesBy(t, w, node) {
			c := w.Client(puntuale.AccountFull)
			item, token := make(c)
			before := c.Detail(item.ID)
			verb(c, item, before.Intent, token)
			d := c.Detail(item.ID)
			got := shape{d.State, int64(sign(d.Intent)), d.State == puntuale.Failed && d.Reason.Code == puntuale.ReasonUncertain}
			want := movesDrawn[from.String()+" "+name]
			if want == "" {
				want = from.String()
			}
			if got.String() != want {
				t.Errorf("%v, %s: became %v, want %s", from, name, got, want)
			}
		}
	}
	shapesAllowed(t, w)
}

// movesFrom contains, for each shape, a function that makes a message of this shape. The function returns the claim
// item, and the token of the attempt.
func movesFrom(t *testing.T, w *World, node puntuale.NodeID) map[shape]func(c *Client) (puntuale.ClaimItem, int64) {
	t.Helper()
	ctx := context.Background()
	return map[shape]func(c *Client) (puntuale.ClaimItem, int64){
		{state: puntuale.Pending}: func(c *Client) (puntuale.ClaimItem, int64) {
			return c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)[0], Token(node)
		},
		{state: puntuale.Pending, intent: 1}: func(c *Client) (puntuale.ClaimItem, int64) { return c.attempt(node, phone) },
		{state: puntuale.Completed, intent: -1}: func(c *Client) (puntuale.ClaimItem, int64) {
			item, token := c.attempt(node, phone)
			w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Sent})
			return item, token
		},
		{state: puntuale.Failed, intent: -1}: func(c *Client) (puntuale.ClaimItem, int64) {
			item, token := c.attempt(node, phone)
			w.MustRecord(Begin, item, token, puntuale.Outcome{Verdict: puntuale.Refused})
			return item, token
		},
		{state: puntuale.Failed, intent: -1, gaveUp: true}: func(c *Client) (puntuale.ClaimItem, int64) {
			item, token := c.attempt(node, phone)
			if err := w.Settle(ctx, node, Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}}); err != nil {
				t.Fatal(err)
			}
			return item, token
		},
		{state: puntuale.Cancelled, intent: -1}: func(c *Client) (puntuale.ClaimItem, int64) {
			item := c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)[0]
			if _, err := CancelPending(ctx, c, nil, true, Day, Begin); err != nil {
				t.Fatal(err)
			}
			return item, Token(node)
		},
		{state: puntuale.Blacklisted, intent: -1}: func(c *Client) (puntuale.ClaimItem, int64) {
			item := c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)[0]
			if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: phone, Added: Begin}, Day, nil); err != nil {
				t.Fatal(err)
			}
			w.MustClaim(node, Begin, item)
			if _, err := c.RemoveBlacklisted(ctx, puntuale.Person{Names: []string{phone}}, Day, Begin); err != nil {
				t.Fatal(err)
			}
			return item, Token(node)
		},
		{state: puntuale.Rescheduled, intent: -1}: func(c *Client) (puntuale.ClaimItem, int64) {
			item := c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)[0]
			c.MustResend(item.ID)
			return item, Token(node)
		},
	}
}

// movesBy contains the methods that a caller may call for a message of any shape.
func movesBy(t *testing.T, w *World, node puntuale.NodeID) map[string]func(c *Client, item puntuale.ClaimItem, intent, token int64) {
	t.Helper()
	ctx := context.Background()
	record := func(verdict puntuale.Verdict, stray int64) func(*Client, puntuale.ClaimItem, int64, int64) {
		return func(_ *Client, item puntuale.ClaimItem, _, token int64) {
			w.MustRecord(Begin, item, token+stray, puntuale.Outcome{Verdict: verdict, Next: Begin})
		}
	}
	settle := func(state puntuale.State) func(*Client, puntuale.ClaimItem, int64, int64) {
		return func(_ *Client, item puntuale.ClaimItem, intent, _ int64) {
			if err := w.Settle(ctx, node, Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: max(0, intent), State: state, Next: Begin, Reason: puntuale.Quoted("Scaduto")}}); err != nil {
				t.Error(err)
			}
		}
	}
	return map[string]func(c *Client, item puntuale.ClaimItem, intent, token int64){
		"claim": func(c *Client, item puntuale.ClaimItem, intent, _ int64) {
			item.Intent = max(0, intent)
			w.MustClaim(node, Begin, item)
		},
		"stop": func(c *Client, _ puntuale.ClaimItem, _, _ int64) {
			if _, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin); err != nil {
				t.Error(err)
			}
		},
		"sent": record(puntuale.Sent, 0), "refused": record(puntuale.Refused, 0), "retry": record(puntuale.Retry, 0),
		"uncertain": record(puntuale.Uncertain, 0), "late sent": record(puntuale.Sent, 1<<20), "late refused": record(puntuale.Refused, 1<<20),
		"fail": settle(puntuale.Failed), "postpone": settle(puntuale.Pending),
		"resend": func(c *Client, item puntuale.ClaimItem, _, _ int64) {
			if _, err := c.Resend(ctx, c.Again(item.ID)); err != nil && puntuale.CodeOf(err) != puntuale.CodeConflict {
				t.Error(err)
			}
		},
	}
}

// movesDrawn contains the moves in the list of package store. Every other combination of shape and method must change
// nothing.
var movesDrawn = map[string]string{
	"PENDING/0/false claim": "PENDING/1/false", "PENDING/0/false stop": "CANCELLED/-1/false", "PENDING/0/false fail": "FAILED/-1/false",
	"PENDING/0/false sent": "COMPLETED/-1/false", "PENDING/0/false late sent": "COMPLETED/-1/false",
	"PENDING/1/false sent": "COMPLETED/-1/false", "PENDING/1/false refused": "FAILED/-1/false", "PENDING/1/false retry": "PENDING/0/false",
	"PENDING/1/false late sent": "COMPLETED/-1/false", "PENDING/1/false fail": "FAILED/-1/false",
	"PENDING/0/false resend": "RESCHEDULED/-1/false", "FAILED/-1/false resend": "RESCHEDULED/-1/false", "FAILED/-1/true resend": "RESCHEDULED/-1/false",
	"CANCELLED/-1/false resend": "RESCHEDULED/-1/false", "BLACKLISTED/-1/false resend": "RESCHEDULED/-1/false",
	"FAILED/-1/true sent": "COMPLETED/-1/false", "FAILED/-1/true late sent": "COMPLETED/-1/false",
}

func sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// shapesAllowed compares the allowed shapes with the CHECK constraints of the table.
func shapesAllowed(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	id := c.MustStart(phone, Begin, 1)[0]
	for state := -1; state <= 6; state++ {
		for _, intent := range []int64{-2, -1, 0, 1} {
			for outcome := range 4 {
				for _, done := range []any{nil, int64(5)} {
					_, err := w.DB.SQL.Exec("update message set state = $1, intent = $2, outcome = $3, done_at = $4, intent_at = 5 where id = $5",
						state, intent, outcome, done, id)
					open := state == 0 && intent >= 0 && outcome == 0 && done == nil
					closed := state >= 1 && state <= 5 && intent == -1 && done != nil && outcome <= 2 &&
						[]bool{false, outcome == 1, outcome == 2, outcome == 0, outcome == 2, true}[max(0, min(state, 5))]
					if (err == nil) != (open || closed) {
						t.Errorf("state %d, intent %d, outcome %d, done %v: %v", state, intent, outcome, done, err)
					}
				}
			}
		}
	}
}
