package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// Times of these tests. Identifiers of runs come from the database's own clock, and the test's clock stands still. The
// times of old runs are twenty years later than the times of both clocks.
var (
	longAgo   = Begin.AddDate(20, 0, 0)
	cutoff    = longAgo.Add(time.Hour)
	blankedAt = cutoff.AddDate(2, 0, 0)
)

func (w *World) mustBlank(before time.Time) {
	w.t.Helper()
	if err := w.Maintain(context.Background(), blankedAt, before); err != nil {
		w.t.Fatalf("maintain: %v", err)
	}
}

// said reports whether the content of a message is still stored. It fails the test if only a part of the content is
// stored.
func (c *Client) said(id puntuale.MessageID) bool {
	c.w.t.Helper()
	d := c.Detail(id)
	gone := d.Content.Empty() && len(d.Request) == 0 && d.Window == nil
	if d.Blanked != gone {
		c.w.t.Errorf("message %d: blanked %v: %+v %q", id, d.Blanked, d.Content, d.Request)
	}
	return !d.Blanked
}

func (c *Client) wantSaid(want bool, ids ...puntuale.MessageID) {
	c.w.t.Helper()
	for _, id := range ids {
		if c.said(id) != want {
			c.w.t.Errorf("message %d still says what it said: %v, want %v", id, !want, want)
		}
	}
}

func (w *World) lateRuns(want int64) {
	w.t.Helper()
	if n := w.Int("select count(*) from late_run"); n != want {
		w.t.Errorf("%d late runs are noted, want %d", n, want)
	}
}

func testBlank(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	sent := c.MustStart(phone, longAgo, 2)
	cancelled := c.MustStart("+393330000002", longAgo, 1)
	theirs := other.MustStart(phone, longAgo, 1)
	after := c.MustStart(phone, longAgo, 2) // one of these messages ends at the cutoff, the other after it
	for i, id := range sent {
		if err := w.Receive(ctx, puntuale.SandboxMessage{Client: c.ID, Message: id, ConnectorID: puntuale.ConnectorID(id, 0), Phone: phone,
			Content: puntuale.Content{Text: fmt.Sprint("testo ", i)}, Received: longAgo}); err != nil {
			t.Fatal(err)
		}
	}
	c.MustSend(node, longAgo.Add(time.Minute), sent...)
	other.MustSend(node, longAgo.Add(time.Minute), theirs...)
	if _, err := CancelPending(ctx, c, []string{"+393330000002"}, false, Day, longAgo); err != nil {
		t.Fatal(err)
	}
	c.MustSend(node, cutoff, after[0])
	c.MustSend(node, cutoff.Add(time.Microsecond), after[1])
	before := c.Detail(sent[0])

	w.mustBlank(time.Time{}) // a zero time turns blanking off
	w.mustBlank(Begin.AddDate(-20, 0, 0))
	c.wantSaid(true, append(sent, cancelled...)...)
	for range 2 {
		w.mustBlank(cutoff)
		c.wantSaid(false, append(sent, cancelled...)...)
		c.wantSaid(true, after...)
		other.wantSaid(false, theirs...)
		w.lateRuns(1)
	}
	d := c.Detail(sent[0])
	if before.Content, before.Request, before.Blanked = (puntuale.Content{}), d.Request, true; !reflect.DeepEqual(d.Message, before.Message) || d.RunName != before.RunName {
		t.Errorf("the message became %+v, was %+v", d, before)
	}
	list, _, err := c.SandboxMessages(ctx, puntuale.Page{})
	if err != nil || len(list) != 2 || !list[0].Blanked || !list[0].Content.Empty() || list[0].Phone != phone {
		t.Errorf("the sandbox shows %+v, %v", list, err)
	}
	if n := w.Int(`select count(*) from run where blanked_at <> 0 and (length(request) > 0 or content like '%testo%')`); n != 0 {
		t.Errorf("%d blanked runs hold something", n)
	}
	w.mustBlank(cutoff.Add(time.Microsecond))
	c.wantSaid(false, after...)
	w.lateRuns(0)
}

// testBlankLate checks that a run becomes old only after its last message has ended. That message may be planned far
// ahead, be sent again, or wait for a receipt.
func testBlankLate(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ahead := c.MustStart(phone, longAgo, 1)
	again := c.MustStart(phone, longAgo, 1)
	doubtful := c.MustStart(phone, longAgo, 1)
	c.MustSend(node, longAgo, again...)
	resent := c.MustResend(again...)
	w.Exec("update message set next_at = $1, valid_until = $2 where id = $3", longAgo.UnixMicro(), blankedAt.AddDate(1, 0, 0).UnixMicro(), resent[0])
	token, _ := w.MustClaim(node, longAgo, c.Items(phone, 0, doubtful...)...)
	all := append(append(ahead, again...), doubtful...)

	w.mustBlank(cutoff)
	c.wantSaid(true, all...)
	w.lateRuns(3)
	w.mustBlank(cutoff)
	w.lateRuns(3)

	// All messages end now. They must be blanked after their retention has passed, and not before.
	if _, err := c.CancelMessages(context.Background(), ahead, Day, blankedAt); err != nil {
		t.Fatal(err)
	}
	c.MustSend(node, blankedAt, resent...)
	w.MustRecord(blankedAt, c.Items(phone, 0, doubtful...)[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
	w.mustBlank(blankedAt.Add(-time.Microsecond))
	c.wantSaid(true, all...)
	w.lateRuns(3)
	w.mustBlank(blankedAt)
	c.wantSaid(false, append(all, resent...)...)
	w.lateRuns(0)
}

// testBlankedIsNotResent checks that a message without content cannot be sent again. Then the call must not send its
// other messages again, either.
func testBlankedIsNotResent(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	old, fresh := c.MustStart(phone, longAgo, 1), c.MustStart(phone, longAgo, 1)
	c.MustSend(node, longAgo, old...)
	w.mustBlank(cutoff)
	used := w.Int("select coalesce(sum(used), 0) from api_usage where client_id = $1", c.ID)
	_, err := c.Resend(ctx, c.Again(fresh[0], old[0]))
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeConflict || len(e.Faults) != 1 || e.Faults[0].Location != "body.id[1]" || e.Faults[0].Code != "message.content_removed" {
		t.Fatalf("%v", err)
	}
	if d := c.Detail(fresh[0]); d.State != puntuale.Pending {
		t.Errorf("the other became %v", d.State)
	}
	if n := w.Int("select coalesce(sum(used), 0) from api_usage where client_id = $1", c.ID); n != used {
		t.Errorf("%d calls are counted, were %d", n, used)
	}
	contents, err := w.Contents(ctx, []puntuale.StepRef{{RunRef: puntuale.RunRef{Client: c.ID, ID: puntuale.RunID(old[0])}}})
	if err != nil || len(contents) != 0 {
		t.Errorf("the dispatcher reads %v, %v", contents, err)
	}
}

// testBlankTogether lets several nodes blank the runs of many clients, while messages are sent again. A run must be
// either blanked or have a new message, but never both.
func testBlankTogether(t *testing.T, w *World) {
	ctx := context.Background()
	node := w.MustJoin()
	var clients []*Client
	var ids [][]puntuale.MessageID
	for range 3 {
		c := w.Client(puntuale.AccountFull)
		var all []puntuale.MessageID
		for range 5 {
			run := c.MustStart(phone, longAgo, 50)
			c.MustSend(node, longAgo.Add(time.Minute), run...)
			all = append(all, run[0])
		}
		clients, ids = append(clients, c), append(ids, all)
	}
	filler := clients[0] // 700 more runs of this client; one statement makes them, because they need no outcomes
	n := "generate_series(1, 700) as n(i)"
	if !w.DB.Postgres {
		n = "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 700) select i from n) as n"
	}
	w.Exec(fmt.Sprintf(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request,
 client_name, sequence_name, content) select %d, i, 0, %d, '+390', 2, 1, '', '', 1, r.request, '', '', '[{}]' from %s cross join run r where r.id = %d`,
		filler.ID, filler.Session, n, ids[0][0]))
	stores := []*World{w, {t: t, Store: w.DB.Open(t), DB: w.DB}}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if err := stores[i%2].Maintain(ctx, blankedAt, cutoff); err != nil {
				t.Error(err)
			}
		})
	}
	resent := make([]bool, 3)
	for i, c := range clients {
		wg.Go(func() {
			_, err := c.Resend(ctx, c.Again(ids[i][2]))
			if resent[i] = err == nil; !resent[i] && puntuale.CodeOf(err) != puntuale.CodeConflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.mustBlank(cutoff)
	for i, c := range clients {
		for j, id := range ids[i] {
			c.wantSaid(j == 2 && resent[i], id)
		}
	}
	if n := w.Int("select count(*) from run where client_id = $1 and id <= 700 and blanked_at = 0", filler.ID); n != 0 {
		t.Errorf("%d runs of many were left out", n)
	}
	if n := w.DB.Meter.Deadlocks.Load(); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// testBlankWaitsForResend blanks a run and resends its message at the same time. The transaction that begins second must
// wait for the other, and see its result.
func testBlankWaitsForResend(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	ids := append(c.MustStart(phone, longAgo, 1), c.MustStart(phone, longAgo, 1)...)
	c.MustSend(node, longAgo, ids...)
	behind := func(do func() error, statements ...string) error {
		t.Helper()
		first, err := w.DB.SQL.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			if _, err := first.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		answered := make(chan error, 1)
		go func() { answered <- do() }()
		w.awaitLockWait(first)
		if err := first.Commit(); err != nil {
			t.Fatal(err)
		}
		return <-answered
	}
	if err := behind(func() error { return w.Maintain(ctx, blankedAt, cutoff) },
		fmt.Sprintf("select 1 from run where id = %d for key share", ids[0]),
		fmt.Sprintf(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, resent_from)
 select client_id, id + 1000, session_id, run_id, 0, due_at, next_at, valid_until, step, origin, phone, id from message where id = %d`, ids[0])); err != nil {
		t.Fatal(err)
	}
	c.wantSaid(true, ids[0])
	c.wantSaid(false, ids[1])
	w.Exec("delete from late_run")
	if err := behind(func() error { _, err := c.Resend(ctx, c.Again(ids[0])); return err },
		fmt.Sprintf("update run set blanked_at = 1, request = '', content = '[]' where id = %d", ids[0]),
		fmt.Sprintf("select 1 from run where id = %d for update", ids[0])); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("sent again: %v", err)
	}
}
