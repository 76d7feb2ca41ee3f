package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
)

// inEachState makes one message for each state that matters to a resend. The keys are names of the states.
func (c *Client) inEachState(node puntuale.NodeID) map[string]puntuale.MessageID {
	c.w.t.Helper()
	ctx := context.Background()
	ids := c.MustStart(phone, Begin, 6)
	now := Begin.Add(time.Minute)
	states := map[string]puntuale.MessageID{"completed": ids[0], "failed": ids[1], "silent": ids[2], "pending": ids[3], "cancelled": ids[4], "flying": ids[5]}
	c.MustSend(node, now, ids[0])
	c.MustEnd(node, now, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero inesistente")}, ids[1])
	c.MustEnd(node, now, puntuale.Outcome{Verdict: puntuale.Refused}, ids[2])
	if _, err := c.CancelMessages(ctx, ids[4:5], Day, now); err != nil {
		c.w.t.Fatal(err)
	}
	c.w.MustClaim(node, now, c.Items(phone, 0, ids[5])...)
	const blocked = "+393330000666"
	states["blacklisted"] = c.MustStart(blocked, Begin, 1)[0]
	if err := c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: blocked, Added: Begin}, Day, nil); err != nil {
		c.w.t.Fatal(err)
	}
	c.w.MustClaim(node, now, c.Items(blocked, 0, states["blacklisted"])...)
	return states
}

func testResend(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(1000)) })
	states := c.inEachState(w.MustJoin())
	asked := []puntuale.MessageID{states["pending"], states["failed"], states["completed"], states["blacklisted"], states["cancelled"], states["silent"]}
	ask := c.Again(asked...)
	ask.Messages[1].Desired = time.Time{}
	used := w.Int("select used from api_usage")
	r, err := c.Resend(ctx, ask)
	if err != nil || len(r.IDs) != len(asked) || r.Usage != (puntuale.Usage{Cap: 1000, Used: used + 1}) {
		t.Fatalf("answer = %+v, %v", r, err)
	}
	for i, id := range asked {
		old, fresh := c.Detail(id), c.Detail(r.IDs[i])
		want := puntuale.Rescheduled
		if id == states["completed"] {
			want = puntuale.Completed
		}
		if old.State != want || old.Intent != -1 {
			t.Errorf("old %d = %+v, want %v", i, old.Message, want)
		}
		if fresh.State != puntuale.Pending || fresh.Intent != 0 || fresh.ResentFrom != id || fresh.Run != old.Run || fresh.Step != old.Step ||
			fresh.Session != old.Session || fresh.Phone != old.Phone || fresh.Origin != old.Origin || fresh.Content.Text != old.Content.Text ||
			string(fresh.Request) != string(old.Request) || fresh.SequenceName != old.SequenceName || fresh.Attempt != 0 || fresh.Generation != 0 {
			t.Errorf("new %d = %+v, old %+v", i, fresh, old)
		}
		if m := ask.Messages[i]; !fresh.Due.Equal(m.Due) || !fresh.Next.Equal(m.Due) || !fresh.Desired.Equal(m.Desired) || !fresh.ValidUntil.Equal(m.ValidUntil) {
			t.Errorf("moments of %d = %+v, asked %+v", i, fresh.Message, m)
		}
	}
	for name, says := range map[string]puntuale.Reason{"failed": puntuale.Quoted("Numero inesistente"), "silent": puntuale.Because(puntuale.ReasonFailed),
		"blacklisted": puntuale.Because(puntuale.ReasonBlacklisted), "cancelled": puntuale.Because(puntuale.ReasonRescheduled), "pending": puntuale.Because(puntuale.ReasonRescheduled)} {
		if d := c.Detail(states[name]); !d.Response().Equal(says) {
			t.Errorf("%s answers %q, want %q", name, d.Response(), says)
		}
	}
	// A sent message may be sent again any number of times. Each new message refers to the old message.
	again := c.MustResend(states["completed"])
	if d := c.Detail(again[0]); d.ResentFrom != states["completed"] || again[0] == r.IDs[2] {
		t.Errorf("again = %+v", d.Message)
	}
	_, err = c.Resend(ctx, c.Again(states["failed"]))
	if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeConflict || len(e.Faults) != 1 || !slices.Contains(e.Faults[0].Args, r.IDs[1].String()) {
		t.Errorf("a re-sent one: %v", err)
	}
	due, err := w.Due(ctx, begin(c.Session), Begin.Add(time.Hour), 100)
	if err != nil || len(due) != 8 { // six messages, one resent message, and one in flight
		t.Errorf("due = %+v, %v", due, err)
	}
}

// testResendAllOrNone checks a resend that is refused for one message. Then no message may be sent again, and the call
// must not count.
func testResendAllOrNone(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	states := c.inEachState(node)
	foreign := other.MustStart(phone, Begin, 1)[0]
	resent := c.MustStart(phone, Begin, 1)
	successor := c.MustResend(resent...)
	used := w.Int("select used from api_usage where client_id = $1", c.ID)
	missing := puntuale.MessageID(12345)
	_, err := c.Resend(ctx, c.Again(states["failed"], foreign, states["flying"], missing))
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeNotFound || len(e.Faults) != 2 || e.Faults[0].Location != "body.id[1]" || e.Faults[1].Location != "body.id[3]" ||
		!e.Faults[0].Reason().Equal(e.Faults[1].Reason()) || e.Faults[1].Value != missing.String() || len(e.Faults[1].Args) > 0 {
		t.Fatalf("missing: %+v", err)
	}
	_, err = c.Resend(ctx, c.Again(states["failed"], states["flying"], resent[0], states["cancelled"]))
	e, ok = errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeConflict || len(e.Faults) != 2 || e.Faults[0].Location != "body.id[1]" || e.Faults[1].Location != "body.id[2]" ||
		!slices.Contains(e.Faults[1].Args, successor[0].String()) {
		t.Fatalf("conflict: %+v", err)
	}
	if d := c.Detail(states["failed"]); d.State != puntuale.Failed {
		t.Errorf("after refusals: %+v", d.Message)
	}
	if n := w.Int("select count(*) from message where resent_from <> 0"); n != 1 {
		t.Errorf("%d re-sent", n)
	}
	if n := w.Int("select used from api_usage where client_id = $1", c.ID); n != used {
		t.Errorf("%d calls counted, %d before", n, used)
	}
}

func testResendCap(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(3)) })
	ids := c.MustStart(phone, Begin, 2)
	c.MustResend(ids[0])
	c.MustStart(phone, Begin, 1)
	_, err := c.Resend(ctx, c.Again(ids[1]))
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeCapReached || e.Usage == nil || *e.Usage != (puntuale.Usage{Cap: 3, Used: 3}) {
		t.Fatalf("over the cap: %v", err)
	}
	_, err = c.Resend(ctx, c.Again(1)) // missing messages are refused before the cap is checked
	WantCode(t, err, puntuale.CodeNotFound)
	if d := c.Detail(ids[1]); d.State != puntuale.Pending {
		t.Errorf("refused, and became %v", d.State)
	}
}

func testResendAfterSessionIsGone(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	second, err := c.CreateSession(ctx, puntuale.Session{Name: "seconda", Type: puntuale.Socket, Sandbox: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := c.Run(phone, Begin, 1)
	run.Run.Session = second
	r, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteSession(ctx, second, true, 0, Begin); err != nil {
		t.Fatal(err)
	}
	if d := c.Detail(c.MustResend(r.IDs...)[0]); d.Session != c.Session {
		t.Fatalf("session %d, want the default one", d.Session)
	}
}

// testResendTogether resends one message with many calls at the same time. Exactly one call must succeed.
func testResendTogether(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	second := w.DB.Open(t)
	ids := c.MustStart(phone, Begin, 3)
	var passed atomic.Int64
	Together(8, func(i int) {
		tenant := c.Tenant
		if i%2 == 1 {
			tenant = second.Tenant(c.ID)
		}
		ask := slices.Clone(ids)
		if i%3 == 0 {
			slices.Reverse(ask)
		}
		switch _, err := tenant.Resend(context.Background(), c.Again(ask...)); {
		case err == nil:
			passed.Add(1)
		case puntuale.CodeOf(err) != puntuale.CodeConflict:
			t.Error(err)
		}
	})
	if n := w.Int("select count(*) from message where resent_from <> 0"); n != 3 || passed.Load() != 1 {
		t.Fatalf("%d re-sent, %d passed", n, passed.Load())
	}
}

// testLateReceiptAfterResend resends a message that was given up as uncertain. Then a receipt shows that the old
// message was delivered. The outcome of the old message must be corrected. Its state and the new message must not
// change.
func testLateReceiptAfterResend(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	item, token := c.attempt(node, phone)
	later := Begin.Add(time.Hour)
	if err := w.Settle(ctx, node, Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}}); err != nil {
		t.Fatal(err)
	}
	next := c.MustResend(item.ID)
	w.MustRecord(later, item, token, puntuale.Outcome{Verdict: puntuale.Sent})
	all, _, err := c.Outcomes(ctx, Begin, later.Add(time.Second), puntuale.Page{})
	if want := (puntuale.MessageOutcome{ID: item.ID, Sent: true, Done: later}); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
		t.Fatalf("outcomes = %+v, %v", all, err)
	}
	if d := c.Detail(item.ID); d.State != puntuale.Rescheduled {
		t.Errorf("state = %v", d.State)
	}
	if d := c.Detail(next[0]); d.State != puntuale.Pending {
		t.Errorf("successor = %v", d.State)
	}
}

func testStopReachesResent(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	old := c.MustStart(phone, Begin, 3)
	next := c.MustResend(old...)
	second := c.MustResend(next[0])
	stopped, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin)
	if want := []puntuale.MessageID{next[1], next[2], second[0]}; err != nil || !slices.Equal(stopped.IDs, want) {
		t.Fatalf("stopped = %+v, %v, want %v", stopped, err, want)
	}
}

func testCancelMessages(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(2)) }), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := c.MustStart(phone, Begin, 4)
	c.MustSend(node, Begin.Add(time.Minute), ids[0])
	foreign := other.MustStart(phone, Begin, 1)[0]
	_, err := c.CancelMessages(ctx, []puntuale.MessageID{ids[1], foreign, 4}, Day, Begin)
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeNotFound || len(e.Faults) != 2 || e.Faults[0].Location != "body.id[1]" || e.Faults[1].Location != "body.id[2]" {
		t.Fatalf("missing: %+v", err)
	}
	if used := w.Int("select used from api_usage where client_id = $1", c.ID); used != 1 {
		t.Fatalf("%d calls counted", used)
	}
	for i, want := range []string{fmt.Sprint(ids[1:3]), "[]"} { // the second call exceeds the cap, but stops are never refused
		done, err := c.CancelMessages(ctx, []puntuale.MessageID{ids[2], ids[0], ids[1], ids[2]}, Day, Begin)
		var got []puntuale.MessageID
		for _, m := range done {
			got = append(got, m.ID)
		}
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("call %d: %v, %v, want %s", i, got, err, want)
		}
	}
	if d := c.Detail(ids[3]); d.State != puntuale.Pending {
		t.Errorf("one not named became %v", d.State)
	}
	if used := w.Int("select used from api_usage where client_id = $1", c.ID); used != 3 {
		t.Errorf("%d calls counted", used)
	}
}
