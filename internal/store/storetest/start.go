package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
)

const phone = "+393331234567"

func testStart(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	ctx := context.Background()
	r, err := c.Start(ctx, c.Run(phone, Begin, 3))
	if err != nil {
		t.Fatal(err)
	}
	ids := r.IDs
	if len(ids) != 3 || ids[1] != ids[0]+1 || ids[2] != ids[0]+2 {
		t.Fatalf("ids = %v, want three without gaps", ids)
	}
	if r.Usage != (puntuale.Usage{Cap: 100, Used: 1}) {
		t.Fatalf("answer = %+v", r)
	}
	d := c.Detail(ids[1])
	at := Begin.Add(time.Second)
	if d.Content.Text != "testo 1" || d.State != puntuale.Pending || d.Phone != phone || d.Origin != puntuale.OriginSequence ||
		string(d.Request) != `{"phone":"`+phone+`"}` || d.ClientName != "Cliente" || d.SequenceName != "promemoria" ||
		!d.Due.Equal(at) || !d.Desired.Equal(at) || !d.Next.Equal(at) || !d.ValidUntil.Equal(at.Add(24*time.Hour)) ||
		!d.Received.Equal(Begin) || d.Run != puntuale.RunID(ids[0]) || d.Step != 1 || d.Session != c.Session || d.Intent != 0 {
		t.Fatalf("detail = %+v", d)
	}
	details, err := c.Details(ctx, []puntuale.MessageID{ids[2], 12345, ids[0], ids[2]})
	if err != nil || len(details) != 2 || details[0].ID != ids[2] || details[1].ID != ids[0] {
		t.Fatalf("details = %+v, %v", details, err)
	}
	ref := puntuale.RunRef{Client: c.ID, ID: d.Run}
	last := puntuale.StepRef{RunRef: ref, Step: 2}
	contents, err := w.Contents(ctx, []puntuale.StepRef{last, {RunRef: ref, Step: 3}, {RunRef: puntuale.RunRef{Client: c.ID + 1, ID: d.Run}}})
	if err != nil || len(contents) != 1 || contents[last].Zone != "Europe/Rome" || contents[last].Content.Text != "testo 2" {
		t.Fatalf("contents = %+v, %v", contents, err)
	}
}

// testEmptyStart checks that a start without messages stores nothing, but counts as a call.
func testEmptyStart(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	r := c.Run(phone, Begin, 0)
	r.Skipped = []puntuale.SkippedStep{{Step: 1, Moment: Begin.Add(-time.Hour), Reason: puntuale.Quoted("past")}}
	r.Idempotency = Keyed("POST /api/start/1", "k", "h")
	for i := range 2 {
		got, err := Start(context.Background(), c, r)
		if err != nil || len(got.IDs) != 0 || got.IDs == nil || got.Usage.Used != 1 || len(got.Skipped) != 1 || got.Replayed != (i == 1) {
			t.Fatalf("answer %d = %+v, %v", i, got, err)
		}
	}
	if n := w.Int("select count(*) from run"); n != 0 {
		t.Fatalf("%d runs", n)
	}
}

func testReplay(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	ctx := context.Background()
	key := *Keyed("POST /api/start/1", "k", "h")
	if r, err := c.KeptAnswer(ctx, key); r != nil || err != nil {
		t.Fatalf("replay of nothing = %v, %v", r, err)
	}
	run := c.Run(phone, Begin, 2)
	run.Idempotency = &key
	run.Skipped = []puntuale.SkippedStep{{Step: 2, Moment: Begin, Reason: puntuale.Quoted("past")}}
	first, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Start(ctx, c, run)
	if err != nil || !second.Replayed || !slices.Equal(second.IDs, first.IDs) || second.Usage != first.Usage || len(second.Skipped) != 1 {
		t.Fatalf("again = %+v, %v; first %+v", second, err, first)
	}
	kept, err := c.KeptAnswer(ctx, key)
	if err != nil || kept == nil {
		t.Fatalf("kept = %q, %v", kept, err)
	}
	third, err := startedBefore(kept)
	if err != nil || third.Usage != first.Usage || len(third.Skipped) != 1 || !slices.Equal(third.IDs, first.IDs) {
		t.Fatalf("replay = %+v, %v", third, err)
	}
	other := key
	other.Hash = "other"
	_, err = c.KeptAnswer(ctx, other)
	WantCode(t, err, puntuale.CodeConflict)
	run.Idempotency = &other
	_, err = c.Start(ctx, run)
	WantCode(t, err, puntuale.CodeConflict)
	elsewhere := key
	elsewhere.Scope = "POST /api/start/2"
	run.Idempotency = &elsewhere
	if r, err := Start(ctx, c, run); err != nil || r.Replayed || r.Usage.Used != 2 {
		t.Fatalf("another scope = %+v, %v", r, err)
	}
	if n := w.Int("select count(*) from message"); n != 4 {
		t.Fatalf("%d messages", n)
	}
}

func testTwins(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	run := c.Run(phone, Begin, 1)
	run.Idempotency = Keyed("POST /api/start/1", "k", "h")
	answers := make([]Started, 24)
	Together(len(answers), func(i int) {
		var err error
		if answers[i], err = Start(context.Background(), c, run); err != nil {
			t.Errorf("twin %d: %v", i, err)
		}
	})
	fresh := 0
	for _, a := range answers {
		if !a.Replayed {
			fresh++
		}
		if !slices.Equal(a.IDs, answers[0].IDs) || a.Usage.Used != 1 {
			t.Errorf("answer = %+v, want that of %+v", a, answers[0])
		}
	}
	if n := w.Int("select count(*) from run"); fresh != 1 || n != 1 {
		t.Fatalf("%d fresh answers, %d runs", fresh, n)
	}
}

// testRefusedKeyIsFree checks that a refused call stores no answer under its key, even if other calls wait for this
// answer.
func testRefusedKeyIsFree(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull, func(c *puntuale.Client) { c.Cap = new(int64(0)) })
	run := c.Run(phone, Begin, 1)
	run.Idempotency = Keyed("POST /api/start/1", "k", "h")
	Together(8, func(int) {
		if _, err := c.Start(context.Background(), run); puntuale.CodeOf(err) != puntuale.CodeCapReached {
			t.Errorf("error = %v", err)
		}
	})
	if n := w.Int("select count(*) from idempotency"); n != 0 {
		t.Fatalf("%d kept answers", n)
	}
	w.Exec("update client set cap = 5")
	if r, err := Start(context.Background(), c, run); err != nil || r.Replayed || r.Usage.Used != 1 {
		t.Fatalf("answer = %+v, %v", r, err)
	}
}

// testStaleStart makes starts from data that were deleted after the caller read them. These calls must be refused and
// not count.
func testStaleStart(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	other := w.Client(puntuale.AccountTest)
	for name, change := range map[string]func(*puntuale.StartRun){
		"sequence":         func(r *puntuale.StartRun) { r.Run.Sequence = 999 },
		"session":          func(r *puntuale.StartRun) { r.Run.Session = 999 },
		"foreign sequence": func(r *puntuale.StartRun) { r.Run.Sequence = other.Sequence },
		"foreign session":  func(r *puntuale.StartRun) { r.Run.Session = other.Session },
	} {
		run := c.Run(phone, Begin, 1)
		change(&run)
		missing := name[strings.LastIndex(name, " ")+1:] + ".not_found"
		if _, err := c.Start(context.Background(), run); puntuale.CodeOf(err) != puntuale.CodeNotFound || !strings.HasSuffix(err.Error(), ": "+missing) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if err := c.DeleteSequence(context.Background(), c.Sequence, false, false, Begin); err != nil {
		t.Fatal(err)
	}
	_, err := c.Start(context.Background(), c.Run(phone, Begin, 1))
	WantCode(t, err, puntuale.CodeNotFound)
	if n := w.Int("select coalesce(max(used), 0) from api_usage"); n != 0 {
		t.Fatalf("%d calls counted", n)
	}
	_, err = w.Tenant(999).Start(context.Background(), c.Run(phone, Begin, 1))
	WantCode(t, err, puntuale.CodeNotFound)
}

func testIfRunning(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountTest)
	ctx := context.Background()
	start := func(how puntuale.IfRunning, phone string) (puntuale.StartedRun, error) {
		r := c.Run(phone, Begin, 2)
		r.IfRunning = how
		return c.Start(ctx, r)
	}
	first, err := start(puntuale.IfRunningReject, phone)
	if err != nil || first.Usage.Used != 1 {
		t.Fatalf("nothing runs: %+v, %v", first, err)
	}
	_, err = start(puntuale.IfRunningReject, phone)
	WantCode(t, err, puntuale.CodeConflict)
	skipped, err := start(puntuale.IfRunningSkip, phone)
	if err != nil || !slices.Equal(skipped.IDs, first.IDs) || skipped.Usage.Used != 2 {
		t.Fatalf("skip = %+v, %v", skipped, err)
	}
	if other, err := start(puntuale.IfRunningReject, "+393330000000"); err != nil || other.Usage.Used != 3 {
		t.Fatalf("another phone = %+v, %v", other, err)
	}
	// Starting the sequence again must not cancel a message in flight. But the run of that message no longer counts as
	// running, because the message will not be retried.
	node := w.MustJoin()
	w.MustClaim(node, Begin, c.Items(phone, 0, first.IDs[0])...)
	restarted, err := start(puntuale.IfRunningRestart, phone)
	if err != nil || len(restarted.IDs) != 2 || restarted.IDs[0] == first.IDs[0] {
		t.Fatalf("restart = %+v, %v", restarted, err)
	}
	if a, b := c.Detail(first.IDs[0]), c.Detail(first.IDs[1]); a.State != puntuale.Pending || b.State != puntuale.Cancelled {
		t.Fatalf("after restart: %v, %v", a.State, b.State)
	}
	allowed, err := start(puntuale.IfRunningAllow, phone)
	if err != nil {
		t.Fatal(err)
	}
	skipped, err = start(puntuale.IfRunningSkip, phone)
	want := slices.Concat(restarted.IDs, allowed.IDs)
	if err != nil || !slices.Equal(skipped.IDs, want) {
		t.Fatalf("skip = %+v, %v, want %v", skipped, err, want)
	}
}

// testIfRunningTogether makes many calls at the same time. Each call starts the sequence only if it is not running.
// Exactly one call must start it.
func testIfRunningTogether(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	skips, rejects := make([]puntuale.StartedRun, 12), make([]error, 12)
	Together(24, func(i int) {
		r := c.Run(phone, Begin, 2)
		if i < 12 {
			r.IfRunning = puntuale.IfRunningSkip
			var err error
			if skips[i], err = c.Start(context.Background(), r); err != nil {
				t.Errorf("skip: %v", err)
			}
			return
		}
		r.IfRunning, r.Run.Phone = puntuale.IfRunningReject, "+393330000000"
		_, rejects[i-12] = c.Start(context.Background(), r)
	})
	for _, a := range skips {
		if !slices.Equal(a.IDs, skips[0].IDs) {
			t.Errorf("ids = %v and %v", a.IDs, skips[0].IDs)
		}
	}
	passed := 0
	for _, err := range rejects {
		if err == nil {
			passed++
		} else if puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("reject: %v", err)
		}
	}
	if runs := w.Int("select count(*) from run"); runs != 2 || passed != 1 {
		t.Fatalf("%d runs, %d passed", runs, passed)
	}
	if used := w.Int("select used from api_usage"); used != 13 {
		t.Fatalf("%d calls counted, want 12 skips and one start", used)
	}
}

// testIfRunningByReference checks that a reference names one subject, such as a booking, whatever its phone is. Runs of
// a campaign with the same reference count only for their own phone.
func testIfRunningByReference(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	const anna, bea, carla = "+393330000001", "+393330000002", "+393330000003"
	sequence := c.Sequence
	other, err := c.CreateSequence(context.Background(), puntuale.Sequence{Name: "other", IfRunning: puntuale.IfRunningAllow, Created: Begin, Updated: Begin}, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := func(phone, reference string, how puntuale.IfRunning) (puntuale.StartedRun, error) {
		r := c.Run(phone, Begin.Add(time.Hour), 2)
		r.Run.Sequence, r.Run.Reference, r.IfRunning = sequence, reference, how
		return c.Start(context.Background(), r)
	}
	begin := func(phone, reference string, how puntuale.IfRunning) []puntuale.MessageID {
		t.Helper()
		started, err := start(phone, reference, how)
		if err != nil {
			t.Fatal(err)
		}
		return started.IDs
	}
	sequence = other
	elsewhere := begin(anna, "booking", "")
	sequence = c.Sequence
	first, second := begin(anna, "booking", ""), begin(anna, "another", "")
	again := c.MustResend(first[1])[0]
	sent := begin(carla, "booking", "")
	w.Exec("update run set campaign_id = 77 where id = $1", int64(sent[0]))
	if kept := begin(bea, "booking", puntuale.IfRunningSkip); !slices.Equal(kept, []puntuale.MessageID{first[0], again}) {
		t.Errorf("skip: %v", kept)
	}
	_, err = start(bea, "booking", puntuale.IfRunningReject)
	WantCode(t, err, puntuale.CodeConflict)
	moved := begin(bea, "booking", puntuale.IfRunningRestart)
	for id, want := range map[puntuale.MessageID]puntuale.State{
		first[0]: puntuale.Cancelled, again: puntuale.Cancelled, moved[0]: puntuale.Pending, second[0]: puntuale.Pending,
		sent[0]: puntuale.Pending, elsewhere[0]: puntuale.Pending,
	} {
		if got := c.Detail(id).State; got != want {
			t.Errorf("message %d after a restart: %v, want %v", id, got, want)
		}
	}
	begin(carla, "booking", puntuale.IfRunningRestart)
	if a, b := c.Detail(moved[0]).State, c.Detail(sent[0]).State; a != puntuale.Cancelled || b != puntuale.Cancelled {
		t.Errorf("after a restart for the campaign's recipient: %v, %v", a, b)
	}
}

// testIfRunningByReferenceTogether starts the same booking for many phones at the same time. One run must stay.
func testIfRunningByReferenceTogether(t *testing.T, w *World) {
	for _, how := range []puntuale.IfRunning{puntuale.IfRunningSkip, puntuale.IfRunningReject, puntuale.IfRunningRestart} {
		c := w.Client(puntuale.AccountFull)
		Together(24, func(i int) {
			r := c.Run(fmt.Sprintf("+3933300000%02d", i), Begin.Add(time.Hour), 2)
			r.Run.Reference, r.IfRunning = "booking", how
			if _, err := c.Start(context.Background(), r); err != nil && (how != puntuale.IfRunningReject || puntuale.CodeOf(err) != puntuale.CodeConflict) {
				t.Errorf("%s: %v", how, err)
			}
		})
		if n := w.Int("select count(*) from message where client_id = $1 and state = 0", c.ID); n != 2 {
			t.Errorf("%s: %d messages wait, want those of one run", how, n)
		}
	}
}

// testBadMember makes a call whose data cannot be stored. The other calls of its batch must succeed.
func testBadMember(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	errs := make([]error, 32)
	Together(len(errs), func(i int) {
		r := c.Run(phone, Begin, 2)
		if i%10 == 3 {
			r.Run.Origin = "NONSENSE"
		}
		_, errs[i] = c.Start(context.Background(), r)
	})
	for i, err := range errs {
		if (err != nil) != (i%10 == 3) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if runs, used := w.Int("select count(*) from run"), w.Int("select used from api_usage"); runs != 29 || used != 29 {
		t.Fatalf("%d runs, %d calls counted, want 29", runs, used)
	}
}

// testExpiredCaller checks a caller that gives up before its task begins. Nothing of its call may be stored.
func testExpiredCaller(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.Start(ctx, c.Run(phone, Begin, 1))
	WantCode(t, err, puntuale.CodeUnavailable)
	results := make([]error, 40)
	Together(len(results), func(i int) {
		ctx, cancel := context.WithCancel(context.Background())
		if i%2 == 1 {
			go cancel()
		}
		defer cancel()
		_, results[i] = c.Start(ctx, c.Run(phone, Begin, 1))
	})
	stored := int64(0)
	for i, err := range results {
		if err == nil {
			stored++
		} else if i%2 == 0 || puntuale.CodeOf(err) != puntuale.CodeUnavailable {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if runs := w.Int("select count(*) from run"); runs != stored {
		t.Fatalf("%d runs, %d answered", runs, stored)
	}
}
