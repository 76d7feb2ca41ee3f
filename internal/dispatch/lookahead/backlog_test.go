package lookahead_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"puntuale"
	"puntuale/internal/dispatch/lookahead"
)

// TestRefill checks that a read is requested only if few messages are in memory and the database has more. It is
// requested once after each FoundMore.
func TestRefill(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		more, campaigns         bool
		low, campaignsLow       bool
		action                  lookahead.Action
		moreThen, campaignsThen bool
	}{
		"nothing more":       {false, false, true, true, nothing, false, false},
		"not low":            {true, true, false, false, nothing, true, true},
		"low":                {true, true, true, false, urgent, false, true},
		"campaigns low":      {true, true, false, true, urgent, true, false},
		"both low":           {true, true, true, true, urgent, false, false},
		"the other is low":   {true, false, false, true, nothing, true, false},
		"the other has more": {false, true, true, false, nothing, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l lookahead.Lookahead
			if test.more {
				l.FoundMore()
			}
			l.SetMoreOfCampaigns(test.campaigns)
			action := l.Refill(test.low, test.campaignsLow, start)
			if action != test.action || l.More() != test.moreThen || l.MoreOfCampaigns() != test.campaignsThen {
				t.Errorf("got %+v, more %v, of campaigns %v", action, l.More(), l.MoreOfCampaigns())
			}
		})
	}
}

// TestExpiry checks when a session that cannot send is read: every ten seconds, earlier if a known message expires, and
// immediately after a change.
func TestExpiry(t *testing.T) {
	t.Parallel()
	var l lookahead.Lookahead
	due := func(after time.Duration, want bool) {
		t.Helper()
		if got := l.ExpiryDue(start.Add(after)); got != want {
			t.Errorf("after %v due is %v", after, got)
		}
	}
	due(0, true)
	due(10*time.Second-1, false)
	due(10*time.Second, true)
	l.ExpireBy(start.Add(12 * time.Second))
	l.ExpireBy(start.Add(15 * time.Second))
	due(12*time.Second-1, false)
	due(12*time.Second, true)
	l.ExpireNow()
	due(12*time.Second, true)
	l.SetBack(time.Hour)
	due(22*time.Second-time.Hour-1, false)
	due(22*time.Second-time.Hour, true)
}

// TestBehind checks the search behind the rows of a read that returned as many rows as it may. The next search is in
// time for the first expiry, but at least ten seconds after the last search.
func TestBehind(t *testing.T) {
	t.Parallel()
	expiring := func(after ...time.Duration) (all []puntuale.DueMessage) {
		for _, d := range after {
			all = append(all, puntuale.DueMessage{ValidUntil: start.Add(d)})
		}
		return all
	}
	for name, test := range map[string]struct {
		found []puntuale.DueMessage
		cut   bool
		next  time.Duration
	}{
		"none":         {nil, false, time.Minute},
		"one":          {expiring(30 * time.Second), false, 30 * time.Second},
		"the first":    {expiring(50*time.Second, 30*time.Second, 40*time.Second), false, 30 * time.Second},
		"very soon":    {expiring(time.Second), false, 10 * time.Second},
		"already":      {expiring(-time.Second, 0), false, time.Minute},
		"perhaps more": {expiring(-time.Second), true, poll},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l lookahead.Lookahead
			if l.BehindDue(start) {
				t.Error("due although all was read")
			}
			l.End(lookahead.Result{Poll: poll, Cut: true}, start)
			l.ExpiryDue(start)
			if !l.BehindDue(start) {
				t.Error("not due although there is more")
			}
			l.GotBehind(test.found, test.cut, poll, start)
			if l.BehindDue(start.Add(test.next-1)) || !l.BehindDue(start.Add(test.next)) {
				t.Errorf("the next look does not come after %v", test.next)
			}
			read := min(test.next, 10*time.Second) // the session itself is read before this time
			if l.ExpiryDue(start.Add(read-1)) || !l.ExpiryDue(start.Add(read)) {
				t.Errorf("the session is not read after %v", read)
			}
		})
	}
}

// TestPollDue checks that the poll's interval begins at the last read that the poll requested.
func TestPollDue(t *testing.T) {
	t.Parallel()
	var l lookahead.Lookahead
	if !l.PollDue(poll, start) {
		t.Error("the first one is not due")
	}
	l.Polled(start)
	if l.PollDue(poll, start.Add(poll-1)) || !l.PollDue(poll, start.Add(poll)) {
		t.Error("the next one is not due after the interval")
	}
	l.SetBack(time.Hour)
	if back := start.Add(-time.Hour); l.PollDue(poll, back.Add(poll-1)) || !l.PollDue(poll, back.Add(poll)) {
		t.Error("a clock that was set back changed the interval")
	}
}

// scheduler does what the real scheduler does for one session. It has two lists and a timer.
type scheduler struct {
	l            lookahead.Lookahead
	now          time.Time
	list, urgent int // number of entries in each of the two lists
	timer        time.Time
}

func (s *scheduler) act(a lookahead.Action) {
	switch a.Kind {
	case lookahead.List:
		s.list++
	case lookahead.ListUrgent:
		s.urgent++
	case lookahead.SetTimer:
		s.timer = a.At
	case lookahead.Nothing:
	}
}

// begin serves one entry of a list, like the real scheduler.
func (s *scheduler) begin(entries *int) {
	if *entries == 0 {
		return
	}
	*entries--
	if s.l.Pending() {
		s.l.Begin(true, ahead, s.now)
	}
}

// TestNothingWantedIsForgotten checks that no wanted read is lost, whatever the order of events. A wanted read is in a
// list, or a timer will list it, or it follows the running read. At most one read runs at a time.
func TestNothingWantedIsForgotten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &scheduler{now: start}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"poll":   func(*rapid.T) { s.act(s.l.Want(false, s.now)) },
			"want":   func(*rapid.T) { s.act(s.l.Want(true, s.now)) },
			"wakeup": func(*rapid.T) { s.act(s.l.Wakeup(s.now, false, s.now)) },
			"resume": func(*rapid.T) { s.act(s.l.Resume(s.now)) },
			"refill": func(*rapid.T) { s.l.FoundMore(); s.act(s.l.Refill(true, true, s.now)) },
			"delay":  func(*rapid.T) { s.l.Delay(s.now.Add(poll)) },
			"list":   func(*rapid.T) { s.begin(&s.list) },
			"urgent": func(*rapid.T) { s.begin(&s.urgent) },
			"set back": func(*rapid.T) {
				s.l.SetBack(time.Second)
				s.now = s.now.Add(-time.Second)
				if !s.timer.IsZero() {
					s.timer = s.timer.Add(-time.Second)
				}
			},
			"timer": func(*rapid.T) {
				if !s.timer.IsZero() && !s.now.Before(s.timer) {
					s.timer = time.Time{}
					s.act(s.l.TimerFired(s.now))
				}
			},
			"end": func(t *rapid.T) {
				if s.l.Reading() {
					s.act(s.l.End(lookahead.Result{
						Poll: poll, Took: time.Duration(rapid.IntRange(0, 2000).Draw(t, "took")) * time.Millisecond,
						CanSend: rapid.Bool().Draw(t, "can send"), Cut: rapid.Bool().Draw(t, "cut"),
						Alone: rapid.Bool().Draw(t, "alone"), Last: row,
					}, s.now))
				}
			},
			"": func(t *rapid.T) {
				phase, timer := s.l.Phase(), !s.timer.IsZero()
				switch {
				case phase == lookahead.Waiting && !timer && s.list+s.urgent == 0,
					phase == lookahead.Listed && s.list == 0,
					phase == lookahead.Urgent && s.urgent == 0:
					t.Fatalf("%v, and nothing brings the read about", phase)
				case s.l.Reading() && s.l.Pending():
					t.Fatalf("%v, and another read may begin", phase)
				case s.l.Wanted() == (phase == lookahead.Idle || phase == lookahead.Reading):
					t.Fatalf("%v, and wanted is %v", phase, s.l.Wanted())
				}
			},
		})
	})
}

// TestWantedIsReadInTime checks that a wanted read begins within the poll's interval, whatever came before. The
// scheduler of this test serves lists and timers immediately.
func TestWantedIsReadInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &scheduler{now: start}
		serve := func() {
			if !s.timer.IsZero() && !s.now.Before(s.timer) {
				s.timer = time.Time{}
				s.act(s.l.TimerFired(s.now))
			}
			for s.urgent+s.list > 0 && !s.l.Reading() {
				s.begin(&s.urgent)
				s.begin(&s.list)
			}
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				s.act(s.l.Want(rapid.Bool().Draw(t, "urgent"), s.now))
			case 1:
				s.act(s.l.Resume(s.now))
			case 2:
				s.now = s.now.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "ms")) * time.Millisecond)
			case 3:
				if s.l.Reading() {
					s.act(s.l.End(lookahead.Result{Poll: poll, Took: time.Hour, CanSend: rapid.Bool().Draw(t, "can send")}, s.now))
				}
			}
			serve()
		}
		if s.l.Reading() {
			s.act(s.l.End(lookahead.Result{Poll: poll, Took: time.Hour, CanSend: true}, s.now))
		}
		s.act(s.l.Want(false, s.now))
		s.now = s.now.Add(poll)
		serve()
		if !s.l.Reading() {
			t.Fatalf("a read was wanted a second ago, and it is %v", s.l.Phase())
		}
	})
}
