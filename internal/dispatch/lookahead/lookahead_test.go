package lookahead_test

import (
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch/lookahead"
)

const (
	poll  = time.Second
	ahead = 2 * time.Second
)

var (
	start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	soon  = start.Add(100 * time.Millisecond) // before this time, the next read must not be listed
	row   = puntuale.QueueCursor{Next: start, ID: 7}
)

// phases contains, for each phase, a function that brings a lookahead into this phase at the time in start. In Waiting,
// the read must not be listed before the time in soon.
var phases = map[lookahead.Phase]func(*lookahead.Lookahead){
	lookahead.Idle:    func(*lookahead.Lookahead) {},
	lookahead.Waiting: func(l *lookahead.Lookahead) { l.Delay(soon); l.Want(false, start) },
	lookahead.Listed:  func(l *lookahead.Lookahead) { l.Want(false, start) },
	lookahead.Urgent:  func(l *lookahead.Lookahead) { l.Want(true, start) },
	lookahead.Reading: func(l *lookahead.Lookahead) { l.Want(true, start); l.Begin(false, ahead, start) },
	lookahead.Again: func(l *lookahead.Lookahead) {
		l.Want(true, start)
		l.Begin(false, ahead, start)
		l.Want(false, start)
	},
}

var (
	nothing  = lookahead.Action{}
	list     = lookahead.Action{Kind: lookahead.List}
	urgent   = lookahead.Action{Kind: lookahead.ListUrgent}
	timerFor = func(at time.Time) lookahead.Action { return lookahead.Action{Kind: lookahead.SetTimer, At: at} }
)

func answered(r lookahead.Result) lookahead.Result {
	r.Poll, r.Took, r.CanSend = poll, soon.Sub(start), true
	return r
}

// TestTransitions checks, for each phase and each event, the next phase and the action.
func TestTransitions(t *testing.T) {
	t.Parallel()
	type event = func(*lookahead.Lookahead) lookahead.Action
	var (
		want   = func(l *lookahead.Lookahead) lookahead.Action { return l.Want(false, start) }
		wanted = func(l *lookahead.Lookahead) lookahead.Action { return l.Want(true, start) }
		later  = func(l *lookahead.Lookahead) lookahead.Action { return l.Want(true, soon) }
		delay  = func(l *lookahead.Lookahead) lookahead.Action { l.Delay(soon); return l.Want(true, start) }
		wakeup = func(l *lookahead.Lookahead) lookahead.Action { return l.Wakeup(soon, false, start) }
		refill = func(l *lookahead.Lookahead) lookahead.Action { l.FoundMore(); return l.Refill(true, false, start) }
		resume = func(l *lookahead.Lookahead) lookahead.Action { return l.Resume(start) }
		early  = func(l *lookahead.Lookahead) lookahead.Action { l.Delay(soon); return l.TimerFired(start) }
		timer  = func(l *lookahead.Lookahead) lookahead.Action { return l.TimerFired(soon) }
		begin  = func(l *lookahead.Lookahead) lookahead.Action { l.Begin(true, ahead, start); return nothing }
		end    = func(l *lookahead.Lookahead) lookahead.Action { return l.End(answered(lookahead.Result{}), start) }
		failed = func(l *lookahead.Lookahead) lookahead.Action {
			return l.End(answered(lookahead.Result{Failed: true}), start)
		}
		lost = func(l *lookahead.Lookahead) lookahead.Action {
			return l.End(answered(lookahead.Result{Lost: true}), start)
		}
		blocked = func(l *lookahead.Lookahead) lookahead.Action { return l.End(lookahead.Result{Poll: poll}, start) }
		crowded = func(l *lookahead.Lookahead) lookahead.Action {
			l.ReadReturned(false, true, start)
			return l.End(answered(lookahead.Result{}), start)
		}
	)
	const (
		idle    = lookahead.Idle
		waiting = lookahead.Waiting
		listed  = lookahead.Listed
		first   = lookahead.Urgent
		reading = lookahead.Reading
		again   = lookahead.Again
	)
	for _, test := range []struct {
		phase  lookahead.Phase
		name   string
		event  event
		next   lookahead.Phase
		action lookahead.Action
	}{
		{idle, "the poll wants it", want, listed, list},
		{idle, "wanted urgently", wanted, first, urgent},
		{idle, "wanted too early", delay, waiting, timerFor(soon)},
		{idle, "wakeup", wakeup, first, urgent},
		{idle, "runs low", refill, first, urgent},
		{idle, "resume", resume, first, urgent},
		{idle, "old timer", timer, idle, nothing},

		{waiting, "the poll wants it", want, waiting, nothing},
		{waiting, "wanted urgently", wanted, waiting, timerFor(soon)},
		{waiting, "wanted urgently, in time", later, first, urgent},
		{waiting, "wakeup", wakeup, waiting, timerFor(soon)},
		{waiting, "runs low", refill, waiting, nothing},
		{waiting, "resume", resume, first, urgent},
		{waiting, "timer, too early", early, waiting, timerFor(soon)},
		{waiting, "timer", timer, first, urgent},
		{waiting, "begin by an old entry of a list", begin, reading, nothing},

		{listed, "the poll wants it", want, listed, nothing},
		{listed, "wanted urgently", wanted, first, urgent},
		{listed, "wanted too early", delay, listed, timerFor(soon)},
		{listed, "wakeup", wakeup, first, urgent},
		{listed, "runs low", refill, listed, nothing},
		{listed, "resume", resume, first, urgent},
		{listed, "timer, too early", early, listed, timerFor(soon)},
		{listed, "timer", timer, first, urgent},
		{listed, "begin", begin, reading, nothing},

		{first, "the poll wants it", want, first, nothing},
		{first, "wanted urgently", wanted, first, nothing},
		{first, "wanted too early", delay, first, nothing},
		{first, "wakeup", wakeup, first, nothing},
		{first, "runs low", refill, first, nothing},
		{first, "resume", resume, first, nothing},
		{first, "old timer", timer, first, nothing},
		{first, "begin", begin, reading, nothing},

		{reading, "the poll wants it", want, again, nothing},
		{reading, "wanted urgently", wanted, again, nothing},
		{reading, "wakeup", wakeup, again, nothing},
		{reading, "runs low", refill, again, nothing},
		{reading, "resume", resume, again, nothing},
		{reading, "old timer", timer, reading, nothing},
		{reading, "end", end, idle, nothing},
		{reading, "failure", failed, idle, nothing},
		{reading, "end, cannot send", blocked, idle, nothing},
		{reading, "end, the session is lost", lost, idle, nothing},
		{reading, "end, too many in retry", crowded, waiting, timerFor(soon)},

		{again, "the poll wants it", want, again, nothing},
		{again, "wanted urgently", wanted, again, nothing},
		{again, "wakeup", wakeup, again, nothing},
		{again, "runs low", refill, again, nothing},
		{again, "resume", resume, again, nothing},
		{again, "old timer", timer, again, nothing},
		{again, "end", end, waiting, timerFor(soon)},
		{again, "failure: the poll asks again", failed, idle, nothing},
		{again, "end, cannot send", blocked, waiting, timerFor(start.Add(poll))},
		{again, "end, the session is lost", lost, idle, nothing},
		{again, "end, too many in retry", crowded, waiting, timerFor(soon)},
	} {
		t.Run(test.phase.String()+"/"+test.name, func(t *testing.T) {
			t.Parallel()
			var l lookahead.Lookahead
			phases[test.phase](&l)
			if l.Phase() != test.phase {
				t.Fatalf("the table's way leads to %v", l.Phase())
			}
			action := test.event(&l)
			if l.Phase() != test.next || action != test.action {
				t.Errorf("then it is %v with %+v, want %v with %+v", l.Phase(), action, test.next, test.action)
			}
		})
	}
}

// TestEndInNoTime requests a second read during a read that takes no time. The second read must begin immediately.
func TestEndInNoTime(t *testing.T) {
	t.Parallel()
	var l lookahead.Lookahead
	phases[lookahead.Again](&l)
	if action := l.End(lookahead.Result{Poll: poll, CanSend: true}, start); action != urgent || l.Phase() != lookahead.Urgent {
		t.Errorf("it is %v with %+v", l.Phase(), action)
	}
}

// TestAfterARead checks that a session spends at most half its time on reads. After a failure, the next read comes
// soon. For a session that cannot send, the next read is not urgent. A delay longer than the poll's interval counts as
// one interval.
func TestAfterARead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result lookahead.Result
		wait   time.Duration
	}{
		"quick":       {lookahead.Result{CanSend: true, Took: 30 * time.Millisecond}, 30 * time.Millisecond},
		"slow":        {lookahead.Result{CanSend: true, Took: time.Hour}, poll},
		"cannot send": {lookahead.Result{Took: 30 * time.Millisecond}, poll},
		"failed":      {lookahead.Result{Failed: true, CanSend: true, Took: time.Hour}, poll / 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l lookahead.Lookahead
			phases[lookahead.Reading](&l)
			test.result.Poll = poll
			l.End(test.result, start)
			if action := l.Want(true, start); action != timerFor(start.Add(test.wait)) {
				t.Errorf("got %+v, want %v", action, test.wait)
			}
		})
	}
}

// TestHorizon checks that a read looks as far as the latest due time in a wakeup, or to the horizon after Want. The
// read resets both.
func TestHorizon(t *testing.T) {
	t.Parallel()
	far, near := start.Add(time.Second), start.Add(time.Millisecond)
	for name, test := range map[string]struct {
		ask  func(*lookahead.Lookahead)
		want time.Time
	}{
		"wakeup":          {func(l *lookahead.Lookahead) { l.Wakeup(far, false, start) }, far},
		"two wakeups":     {func(l *lookahead.Lookahead) { l.Wakeup(far, false, start); l.Wakeup(near, false, start) }, far},
		"change":          {func(l *lookahead.Lookahead) { l.Wakeup(near, true, start) }, start.Add(ahead)},
		"poll and wakeup": {func(l *lookahead.Lookahead) { l.Want(false, start); l.Wakeup(near, false, start) }, start.Add(ahead)},
		"crowded": {func(l *lookahead.Lookahead) {
			l.Want(true, start)
			l.Begin(false, ahead, start)
			l.ReadReturned(false, true, start)
			l.End(answered(lookahead.Result{}), start)
		}, start.Add(ahead)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l lookahead.Lookahead
			test.ask(&l)
			if got := l.Begin(true, ahead, start).Until; !got.Equal(test.want) {
				t.Errorf("it looks until %v, want %v", got, test.want)
			}
			l.ReadReturned(false, false, start)
			l.End(answered(lookahead.Result{}), start)
			l.Wakeup(near, false, soon)
			if got := l.Begin(true, ahead, soon).Until; !got.Equal(near) {
				t.Errorf("the next one looks until %v, want %v", got, near)
			}
		})
	}
}

// TestCursor checks that if a read left rows in the database, the next read continues at the cursor. Exception: if an
// open row may be before the cursor, the next read starts at the beginning.
func TestCursor(t *testing.T) {
	t.Parallel()
	cut := answered(lookahead.Result{Alone: true, Cut: true, Last: row})
	at := start.Add(time.Second)
	none := func(*lookahead.Lookahead) {}
	with := func(change func(*lookahead.Result)) lookahead.Result {
		r := cut
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		during     func(*lookahead.Lookahead) // happens during the first read
		result     lookahead.Result
		after      func(*lookahead.Lookahead)
		fromCursor bool
		at         time.Time // when the second read begins
		from       puntuale.QueueCursor
	}{
		"cut":                   {none, cut, none, true, at, row},
		"no room":               {none, with(func(r *lookahead.Result) { r.Cut, r.NoRoom = false, true }), none, true, at, row},
		"all was read":          {none, with(func(r *lookahead.Result) { r.Cut = false }), none, true, at, puntuale.QueueCursor{}},
		"nothing was taken":     {none, with(func(r *lookahead.Result) { r.Last = puntuale.QueueCursor{} }), none, true, at, puntuale.QueueCursor{}},
		"cannot send":           {none, with(func(r *lookahead.Result) { r.CanSend = false }), none, true, at, puntuale.QueueCursor{}},
		"with others":           {none, with(func(r *lookahead.Result) { r.Alone = false }), none, true, at, puntuale.QueueCursor{}},
		"failed":                {none, with(func(r *lookahead.Result) { r.Failed = true }), none, true, at, puntuale.QueueCursor{}},
		"strayed meanwhile":     {(*lookahead.Lookahead).ReadFromStart, cut, none, true, at, puntuale.QueueCursor{}},
		"strayed":               {none, cut, (*lookahead.Lookahead).ReadFromStart, true, at, puntuale.QueueCursor{}},
		"due before it":         {none, cut, func(l *lookahead.Lookahead) { l.ReadFromStartIfBefore(row.Next) }, true, at, puntuale.QueueCursor{}},
		"due behind it":         {none, cut, func(l *lookahead.Lookahead) { l.ReadFromStartIfBefore(row.Next.Add(1)) }, true, at, row},
		"read with others then": {none, cut, none, false, at, puntuale.QueueCursor{}},
		"almost too old":        {none, cut, none, true, start.Add(5*time.Second - 1), row},
		"too old":               {none, cut, none, true, start.Add(5 * time.Second), puntuale.QueueCursor{}},
		"clock set back":        {none, cut, func(l *lookahead.Lookahead) { l.SetBack(time.Hour) }, true, start.Add(5*time.Second - time.Hour), puntuale.QueueCursor{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l lookahead.Lookahead
			l.Want(true, start)
			l.Begin(true, ahead, start)
			test.during(&l)
			l.End(test.result, start)
			test.after(&l)
			if got := l.Begin(test.fromCursor, ahead, test.at).From; got != test.from {
				t.Errorf("the next read begins at %+v, want %+v", got, test.from)
			}
		})
	}
}

// TestCursorGoesOn checks that each read moves the cursor. A read that returns no row does not move it. The age of the
// cursor counts from the first read.
func TestCursorGoesOn(t *testing.T) {
	t.Parallel()
	var l lookahead.Lookahead
	cut := answered(lookahead.Result{Alone: true, Cut: true, Last: row})
	at := start
	read := func(want puntuale.QueueCursor, r lookahead.Result) {
		t.Helper()
		if got := l.Begin(true, ahead, at).From; got != want {
			t.Errorf("after %v a read begins at %+v, want %+v", at.Sub(start), got, want)
		}
		l.End(r, at)
		at = at.Add(2 * time.Second)
	}
	read(puntuale.QueueCursor{}, cut)
	next := cut
	second := puntuale.QueueCursor{Next: start.Add(1), ID: 8}
	next.Last = second
	read(row, next)
	next.Last = puntuale.QueueCursor{}
	read(second, next)
	read(puntuale.QueueCursor{}, cut) // this read begins six seconds later
}

// TestTakeover checks that reads include the messages in retry under the former owner, until these messages are known.
func TestTakeover(t *testing.T) {
	t.Parallel()
	var l lookahead.Lookahead
	read := func(failed, crowded bool) bool {
		asked := l.Begin(false, ahead, start).Takeover
		l.ReadReturned(failed, crowded, start)
		l.End(answered(lookahead.Result{Failed: failed}), start)
		return asked
	}
	for i, test := range []struct{ failed, crowded, asked, known bool }{
		{failed: true, asked: true},
		{crowded: true, asked: true},
		{failed: true, crowded: true, asked: true},
		{asked: true, known: true},
		{known: true},
	} {
		if asked := read(test.failed, test.crowded); asked != test.asked || l.TakeoverKnown() != test.known || l.Crowded() != test.crowded {
			t.Errorf("read %d: asked %v, known %v, crowded %v", i, asked, l.TakeoverKnown(), l.Crowded())
		}
	}
}

// TestLeft lets a message leave memory during a read. The lookahead must remember this message only until the read ends.
func TestLeft(t *testing.T) {
	t.Parallel()
	var l lookahead.Lookahead
	l.Leave(1)
	l.Want(true, start)
	l.Begin(false, ahead, start)
	l.Leave(2)
	l.Want(true, start)
	l.Leave(3)
	if l.LeftMemory(1) || !l.LeftMemory(2) || !l.LeftMemory(3) {
		t.Errorf("left: %v %v %v", l.LeftMemory(1), l.LeftMemory(2), l.LeftMemory(3))
	}
	l.End(answered(lookahead.Result{}), start)
	if l.LeftMemory(2) || l.LeftMemory(3) {
		t.Error("they are still known after the read")
	}
}
