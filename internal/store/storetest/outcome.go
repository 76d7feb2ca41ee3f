package storetest

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// testOutcomesStayAfterResend checks that the outcome of a message stays in the list of outcomes after the message was
// sent again.
func testOutcomesStayAfterResend(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	states := c.inEachState(w.MustJoin())
	at := Begin.Add(time.Minute)
	list := func(from, to time.Time) []puntuale.MessageOutcome {
		all, next, err := c.Outcomes(ctx, from, to, puntuale.Page{})
		if err != nil || next != "" {
			t.Fatalf("outcomes: %q, %v", next, err)
		}
		return all
	}
	want := []puntuale.MessageOutcome{
		{ID: states["completed"], Sent: true, Done: at},
		{ID: states["failed"], Reason: puntuale.Quoted("Numero inesistente"), Done: at},
		{ID: states["silent"], Reason: puntuale.Because(puntuale.ReasonFailed), Done: at},
		{ID: states["blacklisted"], Reason: puntuale.Because(puntuale.ReasonBlacklisted), Done: at},
	}
	if got := list(at, at.Add(time.Microsecond)); !slices.EqualFunc(got, want, sameOutcome) {
		t.Fatalf("outcomes = %+v, want %+v", got, want)
	}
	w.DB.Clock.Advance(2 * time.Hour)
	c.MustResend(states["completed"], states["failed"], states["silent"], states["blacklisted"], states["cancelled"], states["pending"])
	if got := list(Begin, Begin.Add(24*time.Hour)); !slices.EqualFunc(got, want, sameOutcome) {
		t.Fatalf("after the re-send = %+v, want %+v", got, want)
	}
	if got := list(Begin, at); len(got) != 0 { // the end of the period is exclusive
		t.Fatalf("before = %+v", got)
	}
}

// testCorrectedOutcome checks that a corrected outcome is listed only at the time of its correction.
func testCorrectedOutcome(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	item, token := c.attempt(node, phone)
	if err := w.Settle(ctx, node, Begin, []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: token, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}}); err != nil {
		t.Fatal(err)
	}
	first, second := Begin, Begin.Add(time.Hour)
	check := func(at time.Time, want ...puntuale.MessageOutcome) {
		t.Helper()
		got, _, err := c.Outcomes(ctx, at, at.Add(time.Minute), puntuale.Page{})
		if err != nil || !slices.EqualFunc(got, want, sameOutcome) {
			t.Errorf("at %v: %+v, %v, want %+v", at, got, err, want)
		}
	}
	check(first, puntuale.MessageOutcome{ID: item.ID, Reason: puntuale.Because(puntuale.ReasonUncertain), Done: first})
	w.MustRecord(second, item, token, puntuale.Outcome{Verdict: puntuale.Sent})
	check(first)
	check(second, puntuale.MessageOutcome{ID: item.ID, Sent: true, Done: second})
}

// testOutcomePages checks pages of 1,000 rows. A cursor must work even in the middle of many outcomes with the same
// timestamp.
func testOutcomePages(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	const runs = 21
	var ids []puntuale.MessageID
	for range runs {
		ids = append(ids, c.MustStart(phone, Begin, puntuale.MaxSteps)...)
	}
	now := Begin.Add(time.Hour)
	items := c.Items(phone, 0, ids...)
	token, granted := w.MustClaim(node, now, items...)
	if slices.Contains(granted, puntuale.ClaimStale) {
		t.Fatal("not all were claimed")
	}
	var results []puntuale.Result
	for _, item := range items {
		results = append(results, puntuale.Result{MessageRef: item.MessageRef, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}})
	}
	slices.Reverse(results[:100])
	for i, part := range [][]puntuale.Result{results[:1020], results[1020:]} {
		if _, err := w.Record(ctx, now.Add(time.Duration(i)*time.Second), part); err != nil {
			t.Fatal(err)
		}
	}
	page := puntuale.Page{Limit: 1000}
	first, next, err := c.Outcomes(ctx, Begin, now.Add(time.Hour), page)
	if err != nil || len(first) != 1000 || next == "" {
		t.Fatalf("first page: %d, %q, %v", len(first), next, err)
	}
	page.Cursor = next
	second, next, err := c.Outcomes(ctx, Begin, now.Add(time.Hour), page)
	if err != nil || len(second) != len(ids)-1000 || next != "" {
		t.Fatalf("second page: %d, %q, %v", len(second), next, err)
	}
	var got []puntuale.MessageID
	for _, o := range append(first, second...) {
		got = append(got, o.ID)
	}
	if !slices.Equal(got, ids) { // outcomes must be sorted by timestamp, and then by id
		t.Fatal("not by moment and id")
	}
	_, _, err = c.Outcomes(ctx, Begin, now, puntuale.Page{Cursor: "b3V0Y29tZTp4Onk"})
	WantCode(t, err, puntuale.CodeInvalid)
}

func testListMessages(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	states := c.inEachState(node) // six messages to the number phone, and one to another number
	run := c.Run("+393330000001", Begin.Add(24*time.Hour), 2)
	run.Run.Sequence, run.Run.Origin = 0, puntuale.OriginSingle
	single, err := c.Start(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	resent := c.MustResend(states["failed"])
	list := func(f puntuale.MessageFilter) []puntuale.MessageID {
		t.Helper()
		all, next, err := c.Messages(ctx, f, puntuale.Page{})
		if err != nil || next != "" {
			t.Fatalf("%+v: %q, %v", f, next, err)
		}
		var ids []puntuale.MessageID
		for _, d := range all {
			ids = append(ids, d.ID)
			if want := c.Detail(d.ID); !reflect.DeepEqual(d.Message, want.Message) || d.Content.Text != want.Content.Text {
				t.Errorf("%+v: %+v, want %+v", f, d, want)
			}
		}
		if !slices.IsSortedFunc(ids, func(a, b puntuale.MessageID) int { return int(b - a) }) {
			t.Errorf("%+v: not newest first: %v", f, ids)
		}
		slices.Sort(ids)
		return ids
	}
	named := func(names ...string) (ids []puntuale.MessageID) {
		for _, name := range names {
			ids = append(ids, states[name])
		}
		return ids
	}
	ofPhone := append(named("completed", "failed", "silent", "pending", "cancelled", "flying"), resent...)
	all := slices.Concat(ofPhone, named("blacklisted"), single.IDs)
	for _, test := range []struct {
		name string
		f    puntuale.MessageFilter
		want []puntuale.MessageID
	}{
		{"none", puntuale.MessageFilter{}, all},
		{"phone", puntuale.MessageFilter{Phone: phone}, ofPhone},
		{"sequence", puntuale.MessageFilter{Sequence: c.Sequence}, append(slices.Clone(ofPhone), states["blacklisted"])},
		{"phone and sequence", puntuale.MessageFilter{Phone: "+393330000001", Sequence: c.Sequence}, nil},
		{"origin", puntuale.MessageFilter{Origin: puntuale.OriginSingle}, single.IDs},
		{"pending", puntuale.MessageFilter{State: new(puntuale.Pending)}, slices.Concat(named("pending", "flying"), single.IDs, resent)},
		{"pending of a sequence", puntuale.MessageFilter{State: new(puntuale.Pending), Sequence: c.Sequence, Phone: phone}, append(named("pending", "flying"), resent...)},
		{"failed", puntuale.MessageFilter{State: new(puntuale.Failed)}, named("silent")},
		{"rescheduled", puntuale.MessageFilter{State: new(puntuale.Rescheduled)}, named("failed")},
		{"period", puntuale.MessageFilter{From: Begin.Add(time.Hour), To: Begin.Add(24*time.Hour + time.Second)}, append(resent, single.IDs[0])},
	} {
		slices.Sort(test.want)
		if got := list(test.f); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// testListMessagesPages checks that pages neither repeat nor miss messages while new messages are added. Some of the
// messages are resent messages.
func testListMessagesPages(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	var ids []puntuale.MessageID
	for range 4 {
		started := c.MustStart(phone, Begin, 3)
		ids = append(ids, started...)
		ids = append(ids, c.MustResend(started[1])...)
	}
	for _, f := range []puntuale.MessageFilter{
		{}, {Phone: phone}, {State: new(puntuale.Pending)}, {Sequence: c.Sequence},
		{Look: 1}, {Look: 3, Sequence: c.Sequence}, {Look: 1, State: new(puntuale.Pending), Origin: puntuale.OriginSequence}, {Look: 2, Origin: puntuale.OriginAutomation},
		{Look: 1, State: new(puntuale.Failed)}, {Look: 1, To: Begin.Add(-2 * time.Hour)}, {Look: 2, To: Begin.Add(2 * time.Hour)},
	} {
		var want, got []puntuale.MessageID
		all, err := c.Details(ctx, ids)
		if err != nil || len(all) != len(ids) {
			t.Fatalf("details of %d: %d, %v", len(ids), len(all), err)
		}
		for _, d := range all {
			if (f.State == nil || d.State == *f.State) && (f.Origin == "" || d.Origin == f.Origin) && (f.To.IsZero() || d.Planned().Before(f.To)) {
				want = append(want, d.ID)
			}
		}
		slices.Sort(want)
		slices.Reverse(want)
		for page := (puntuale.Page{Limit: 3}); ; {
			part, next, err := c.Messages(ctx, f, page)
			if err != nil || len(part) > 3 {
				t.Fatalf("page: %v, %v", part, err)
			}
			for _, d := range part {
				got = append(got, d.ID)
			}
			if next == "" {
				break
			}
			page.Cursor = next
			ids = append(ids, c.MustStart(phone, Begin, 1)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", f, got, want)
		}
	}
}

// testListMessagesTo checks that a list with Look reads only a limited number of calls. Among these calls, it must show
// the same messages as a list without Look: whole runs, and resent messages.
func testListMessagesTo(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	started := c.MustStart(phone, Begin, 3)
	c.MustResend(started[1])
	w.DB.Clock.Advance(3 * time.Hour)
	c.MustStart(phone, Begin.Add(3*time.Hour), 2)
	for to, n := range map[time.Duration]int{-3 * time.Hour: 0, 90 * time.Minute: 4, 6 * time.Hour: 6} {
		for _, look := range []int{0, 1, 100} {
			f := puntuale.MessageFilter{Look: look, To: Begin.Add(to)}
			var all []puntuale.MessageDetail
			for page := (puntuale.Page{}); ; {
				part, next, err := c.Messages(ctx, f, page)
				if err != nil {
					t.Fatal(err)
				}
				if all = append(all, part...); next == "" {
					break
				}
				page.Cursor = next
			}
			if len(all) != n {
				t.Errorf("to %v, looking at %d: %d messages, want %d", to, look, len(all), n)
			}
		}
	}
}

func sameOutcome(a, b puntuale.MessageOutcome) bool { return reflect.DeepEqual(a, b) }
