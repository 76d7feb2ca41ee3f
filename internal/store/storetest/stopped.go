package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// stops contains all ways to cancel the client's pending messages.
var stops = map[string]func(ctx context.Context, c *Client, ids []puntuale.MessageID) ([]puntuale.MessageID, error){
	"stop": func(ctx context.Context, c *Client, _ []puntuale.MessageID) ([]puntuale.MessageID, error) {
		s, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin)
		return s.IDs, err
	},
	"cancel by phone": func(ctx context.Context, c *Client, _ []puntuale.MessageID) ([]puntuale.MessageID, error) {
		done, err := CancelPending(ctx, c, []string{phone}, false, Day, Begin)
		return cancelledIDs(done), err
	},
	"cancel all": func(ctx context.Context, c *Client, _ []puntuale.MessageID) ([]puntuale.MessageID, error) {
		done, err := CancelPending(ctx, c, nil, true, Day, Begin)
		return cancelledIDs(done), err
	},
	"cancel by id": func(ctx context.Context, c *Client, ids []puntuale.MessageID) ([]puntuale.MessageID, error) {
		done, err := c.CancelMessages(ctx, ids, Day, Begin)
		return cancelledIDs(done), err
	},
	"restart": func(ctx context.Context, c *Client, ids []puntuale.MessageID) ([]puntuale.MessageID, error) {
		r := c.Run(phone, Begin.Add(time.Hour), 1)
		r.IfRunning = puntuale.IfRunningRestart
		_, err := c.Start(ctx, r)
		return ids[1:], err
	},
	"sequence deleted": func(ctx context.Context, c *Client, ids []puntuale.MessageID) ([]puntuale.MessageID, error) {
		return ids[1:], c.DeleteSequence(ctx, c.Sequence, false, true, Begin)
	},
	"client deleted": func(ctx context.Context, c *Client, ids []puntuale.MessageID) ([]puntuale.MessageID, error) {
		return ids[1:], c.w.Store.Partner(c.w.Partner).DeleteClient(ctx, c.ID, Begin)
	},
}

func cancelledIDs(done []puntuale.CancelledMessage) (ids []puntuale.MessageID) {
	for _, m := range done {
		ids = append(ids, m.ID)
	}
	return ids
}

// testStoppedInFlight stops a run while its message is in flight. The answer must not contain the message. If the
// attempt ends in a retry, the message must be cancelled and not sent again. Receipts must count as usual.
func testStoppedInFlight(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	later := Begin.Add(time.Minute)
	for name, stop := range stops {
		c := w.Client(puntuale.AccountTest)
		ids := c.MustStart(phone, Begin, 2)
		token, granted := w.MustClaim(node, Begin, c.Items(phone, 0, ids[0])...)
		if granted[0] != puntuale.ClaimGranted {
			t.Fatalf("%s: %v", name, granted)
		}
		for range 2 { // the second stop must find no more messages, and change nothing
			got, err := stop(ctx, c, ids)
			if name == "client deleted" || name == "sequence deleted" {
				if got = ids[1:]; err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
					t.Fatalf("%s: %v", name, err)
				}
				err = nil
			}
			if err != nil || len(got) > 0 && !slices.Equal(got, ids[1:]) {
				t.Fatalf("%s: %v, %v, want %v", name, got, err, ids[1:])
			}
		}
		if d := c.Detail(ids[0]); d.State != puntuale.Pending || d.Intent != token || !d.ValidUntil.Equal(Begin.Add(24*time.Hour)) {
			t.Errorf("%s: in flight: %+v", name, d)
		}
		item := c.Items(phone, 0, ids[0])[0]
		if !w.MustRecord(later, item, token, puntuale.Outcome{Verdict: puntuale.Retry, Next: later, Detail: puntuale.Quoted("occupato"), Failed: true}) {
			t.Errorf("%s: the outcome was not applied", name)
		}
		d := c.Detail(ids[0])
		if d.State != puntuale.Cancelled || d.Intent != -1 || !d.Done.Equal(later) || d.Response().Code != puntuale.ReasonCancelled || d.Detail.String() != "occupato" ||
			!d.ValidUntil.Equal(Begin.Add(24*time.Hour)) || c.credits() != 100 {
			t.Errorf("%s: back for a retry: %+v, %d credits", name, d, c.credits())
		}
		if _, granted := w.MustClaim(node, later, item); granted[0] == puntuale.ClaimGranted {
			t.Errorf("%s: it may be sent again", name)
		}
	}
}

// testStoppedOutcomes records outcomes of messages that were stopped in flight. The outcomes sent and refused must
// count. An uncertain message must not be repeated, and must wait for a receipt.
func testStoppedOutcomes(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountTest)
	node := w.MustJoin()
	var items []puntuale.ClaimItem
	for range 4 {
		items = append(items, c.Items(phone, 0, c.MustStart(phone, Begin, 1)...)...)
	}
	token, _ := w.MustClaim(node, Begin, items...)
	if s, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin); err != nil || len(s.IDs) != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	now := Begin.Add(time.Second)
	results := []puntuale.Result{
		{Outcome: puntuale.Outcome{Verdict: puntuale.Sent}},
		{Outcome: puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("Numero non valido")}},
		{Outcome: puntuale.Outcome{Verdict: puntuale.Uncertain, Next: now}},
		{Outcome: puntuale.Outcome{Verdict: puntuale.Retry, Next: now}},
	}
	for i := range results {
		results[i].MessageRef, results[i].Token = items[i].MessageRef, token
	}
	if applied, err := w.Record(ctx, now, results); err != nil || slices.Contains(applied, false) {
		t.Fatalf("%v, %v", applied, err)
	}
	for i, want := range []puntuale.State{puntuale.Completed, puntuale.Failed, puntuale.Pending, puntuale.Cancelled} {
		if d := c.Detail(items[i].ID); d.State != want || !d.ValidUntil.Equal(Begin.Add(24*time.Hour)) {
			t.Errorf("%v: %+v", results[i].Outcome.Verdict, d)
		}
	}
	repeat := items[2]
	repeat.Intent = token
	if _, granted := w.MustClaim(node, now, repeat); granted[0] != puntuale.ClaimStale {
		t.Errorf("a stopped one is repeated: %v", granted)
	}
	if !w.MustRecord(now, repeat, token, puntuale.Outcome{Verdict: puntuale.Sent}) || c.Detail(repeat.ID).State != puntuale.Completed {
		t.Errorf("evidence was dropped: %+v", c.Detail(repeat.ID))
	}
	// After a resend, the store must treat the new messages like any other message.
	for _, id := range c.MustResend(items[0].ID, items[1].ID, items[3].ID) {
		if _, granted := w.MustClaim(node, Begin.Add(2*time.Hour), c.Items(phone, 0, id)...); granted[0] != puntuale.ClaimGranted {
			t.Errorf("message %d: %v", id, granted)
		}
	}
}

// testStoppedIsNotRunning checks that a run does not count as running if its message was stopped in flight. So a start
// with if_running is accepted while the attempt still has no outcome.
func testStoppedIsNotRunning(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	for _, ask := range []puntuale.IfRunning{puntuale.IfRunningReject, puntuale.IfRunningSkip, puntuale.IfRunningRestart} {
		c := w.Client(puntuale.AccountFull)
		ids := c.MustStart(phone, Begin, 1)
		token, _ := w.MustClaim(node, Begin, c.Items(phone, 0, ids...)...)
		r := c.Run(phone, Begin, 1)
		r.IfRunning = ask
		if ask == puntuale.IfRunningReject { // in this case the message is in flight but not stopped
			if _, err := c.Start(ctx, r); puntuale.CodeOf(err) != puntuale.CodeConflict {
				t.Errorf("while it is running: %v", err)
			}
		}
		if _, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin); err != nil {
			t.Fatal(err)
		}
		started, err := c.Start(ctx, r)
		if err != nil || len(started.IDs) != 1 || started.IDs[0] == ids[0] {
			t.Errorf("%s: started %v, %v; %v was stopped", ask, started.IDs, err, ids)
		}
		if !w.MustRecord(Begin, c.Items(phone, 0, ids...)[0], token, puntuale.Outcome{Verdict: puntuale.Sent}) {
			t.Errorf("%s: the outcome was not applied", ask)
		}
	}
}

// testStoppedReopenedByVersionBefore uses a node of the previous version, which sets the intent of a stopped message
// back to 0. The message stays marked as stopped, so no node can claim it. It must always end as CANCELLED.
func testStoppedReopenedByVersionBefore(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	for name, end := range map[string]func(c *Client, id puntuale.MessageID) error{
		"a stop": func(c *Client, _ puntuale.MessageID) error {
			_, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin)
			return err
		},
		"its deadline": func(c *Client, id puntuale.MessageID) error {
			due, err := w.Expiring(ctx, c.Session, Begin.Add(time.Minute), 10)
			if err != nil || len(due) != 1 || due[0].ID != id {
				t.Fatalf("expiring: %v, %v", due, err)
			}
			return w.Settle(ctx, node, Begin.Add(time.Minute), []puntuale.Settlement{{MessageRef: puntuale.MessageRef{Client: c.ID, ID: id}, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonExpired)}})
		},
		"maintenance after its client was deleted": func(c *Client, _ puntuale.MessageID) error {
			w.Exec("update session set deleted_at = 1 where client_id = $1", c.ID)
			return w.Maintain(ctx, Begin.Add(time.Minute), time.Time{})
		},
		"the cancellation of everything": func(c *Client, _ puntuale.MessageID) error {
			_, err := CancelPending(ctx, c, nil, true, Day, Begin)
			return err
		},
	} {
		c := w.Client(puntuale.AccountFull)
		id := c.MustStart(phone, Begin, 1)[0]
		w.MustClaim(node, Begin, c.Items(phone, 0, id)...)
		if _, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin); err != nil {
			t.Fatal(err)
		}
		w.Exec("update message set intent = 0 where id = $1", id)
		if _, granted := w.MustClaim(node, Begin, c.Items(phone, 0, id)...); granted[0] == puntuale.ClaimGranted {
			t.Fatalf("%s: it may be sent", name)
		}
		if err := end(c, id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := c.Detail(id); d.State != puntuale.Cancelled || d.Response().Code != puntuale.ReasonCancelled || !d.ValidUntil.Equal(Begin.Add(24*time.Hour)) ||
			w.Int("select count(*) from message where id = $1 and valid_until < 0", id) != 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
