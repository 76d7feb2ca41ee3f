package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"puntuale"
)

var zoneNames = []string{"Europe/Rome", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Casablanca",
	"Pacific/Apia", "America/Sao_Paulo", "America/St_Johns", "UTC"}

func drawInput(t *rapid.T) Input {
	loc, err := time.LoadLocation(rapid.SampledFrom(zoneNames).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	// These days are near clock changes, holidays and ends of months.
	day := rapid.SampledFrom([]string{"2026-03-28", "2026-10-24", "2026-11-01", "2026-12-24", "2027-01-30", "2026-04-04",
		"2011-12-28", "2018-11-03", "2018-02-17"}).Draw(t, "now")
	at, _ := time.Parse(time.DateOnly, day)
	in := Input{Phone: "+39333", Location: loc, Fields: map[string]Value{}, Seed: rapid.Uint64().Draw(t, "seed")}
	in.Now = at.Add(time.Duration(rapid.IntRange(0, 3*24*3600*1000).Draw(t, "ms")) * time.Millisecond)
	for _, name := range []string{"f", "g"} {
		f := in.Now.Add(time.Duration(rapid.IntRange(-5*24*60, 40*24*60).Draw(t, name)) * time.Minute).In(loc)
		form := rapid.SampledFrom([]string{"2006-01-02T15:04", "02/01/2006", "2006-01-02T15:04:05Z07:00"}).Draw(t, name+" form")
		in.Fields[name] = Value{Text, f.Format(form)}
	}
	if rapid.Bool().Draw(t, "closed") {
		in.Closed = []puntuale.Date{puntuale.DateOf(in.Now.In(loc)), puntuale.DateOf(in.Now).AddDays(2)}
	}
	in.Sequence.Name = "x"
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		in.Sequence.Steps = append(in.Sequence.Steps, puntuale.Step{Text: "a", Timing: drawTiming(t)})
	}
	if faults := Check(in.Sequence); len(faults) > 0 {
		t.Fatalf("%+v", faults)
	}
	return in
}

// drawNear draws an input whose messages are at most 40 months away, with and without jitter. The planner refuses
// messages that are farther away.
func drawNear(t *rapid.T, draw func(*rapid.T) Input) Input {
	return rapid.Custom(draw).Filter(func(in Input) bool {
		_, err := Build(in)
		_, steady := Build(withoutJitter(in))
		return err == nil && steady == nil
	}).Draw(t, "input")
}

func withoutJitter(in Input) Input {
	in.Sequence.Steps = slices.Clone(in.Sequence.Steps)
	for i := range in.Sequence.Steps {
		in.Sequence.Steps[i].Timing.Jitter = 0
	}
	return in
}

func drawClock(t *rapid.T, label string) string {
	quarter := rapid.IntRange(0, 95).Draw(t, label)
	return time.Unix(0, 0).UTC().Add(15 * time.Minute * time.Duration(quarter)).Format("15:04")
}

func drawTiming(t *rapid.T) puntuale.Timing {
	timing := puntuale.Timing{
		Anchor: rapid.SampledFrom([]string{"", "start", "f", "g"}).Draw(t, "anchor"),
		IfPast: rapid.SampledFrom([]puntuale.IfPast{"", puntuale.PastSkip, puntuale.PastSend}).Draw(t, "if past"),
		Jitter: rapid.SampledFrom([]int{0, 0, 1, 600, 86400}).Draw(t, "jitter"),
		Offset: puntuale.Offset{
			Amount:    rapid.IntRange(0, 40).Draw(t, "amount"),
			Unit:      rapid.SampledFrom([]puntuale.Unit{puntuale.Seconds, puntuale.Minutes, puntuale.Hours, puntuale.Days, puntuale.Weeks, puntuale.Months}).Draw(t, "unit"),
			Direction: rapid.SampledFrom([]puntuale.Direction{puntuale.Before, puntuale.After}).Draw(t, "direction"),
		},
	}
	if timing.Anchor == "" || timing.Anchor == "start" {
		timing.Offset.Direction = puntuale.After
	}
	if _, short := elapsed(timing.Offset.Unit); !short && rapid.Bool().Draw(t, "has at") {
		timing.At = drawClock(t, "at")
	}
	if rapid.Bool().Draw(t, "has window") {
		w := &puntuale.Window{Holidays: rapid.SampledFrom([]string{"", "avoid"}).Draw(t, "holidays"),
			Weekdays: rapid.SliceOfNDistinct(rapid.IntRange(1, 7), 0, 7, rapid.ID[int]).Draw(t, "weekdays")}
		if w.From, w.To = drawClock(t, "from"), drawClock(t, "to"); w.From == w.To {
			w.From, w.To = "", ""
		}
		timing.Window = w
	}
	return timing
}

func isBefore(t puntuale.Timing) bool {
	return t.Anchor != "" && t.Anchor != "start" && t.Offset.Direction == puntuale.Before
}

func TestPlanProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawNear(t, drawInput)
		p, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Build(in)
		if !reflect.DeepEqual(p, again) {
			t.Fatal("the same input gave another plan")
		}
		if len(p.Messages)+len(p.Skipped) != len(in.Sequence.Steps) {
			t.Fatal("a step is neither planned nor left out")
		}
		last := -1
		for i := range p.Messages {
			if p.Messages[i].Step <= last {
				t.Fatal("messages are not in step order")
			}
			last = p.Messages[i].Step
			checkMessage(t, &in, &p.Messages[i])
		}
		for _, s := range p.Skipped {
			if !s.Moment.Before(in.Now) {
				t.Fatalf("left out for %s, which is not past", s.Moment)
			}
		}
		checkDry(t, in, p)
	})
}

func checkMessage(t *rapid.T, in *Input, m *puntuale.PlannedMessage) {
	timing := in.Sequence.Steps[m.Step].Timing
	if m.Due.Before(in.Now) {
		t.Fatalf("due %s, before the call", m.Due)
	}
	if m.Due.Before(m.Desired) && !isBefore(timing) {
		t.Fatalf("due %s, earlier than wished, %s", m.Due, m.Desired)
	}
	if !m.Window.Contains(m.Due, in.Location) {
		t.Fatalf("due %s, outside the window %+v", m.Due.In(in.Location), m.Window)
	}
	if timing.Window != nil && timing.Window.Holidays == "avoid" && len(in.Closed) > 0 && m.Window.From == "" {
		for _, d := range in.Closed {
			if puntuale.DateOf(m.Due.In(in.Location)) == d {
				t.Fatalf("due on the client's own holiday %s", d)
			}
		}
	}
	if !m.ValidUntil.After(m.Due) {
		t.Fatalf("due %s, valid until %s", m.Due, m.ValidUntil)
	}
	if isBefore(timing) {
		moment, _ := ParseMoment(in.Fields[timing.Anchor].Text)
		at := DefaultTime
		if timing.At != "" {
			at, _ = puntuale.ParseTimeOfDay(timing.At)
		}
		anchor := moment.At(at, in.Location)
		itself := m.Due.Equal(anchor) && m.DueMax.Equal(anchor) && m.Desired.Equal(anchor) // "before" with amount 0
		if !itself && (!m.Due.Before(anchor) || m.ValidUntil.After(anchor)) {
			t.Fatalf("due %s, valid until %s, to be before %s", m.Due, m.ValidUntil, anchor)
		}
	}
	for _, at := range []time.Time{m.Due, m.DueMax, m.ValidUntil, m.Desired} {
		if at.Location() != time.UTC || !at.Equal(at.Truncate(time.Microsecond)) {
			t.Fatalf("%s is not UTC to the microsecond", at)
		}
	}
}

// checkDry compares a plan with its dry run. Each due time must be between the dry run's earliest and latest time.
// checkDry also compares the plan with a sequence that contains each step twice.
func checkDry(t *rapid.T, in Input, p Plan) {
	dry := in
	dry.Seed = 0
	bounds, err := Build(dry)
	if err != nil {
		return // only the dry run's latest time is beyond the horizon
	}
	if !reflect.DeepEqual(bounds.Skipped, p.Skipped) {
		t.Fatal("the dry run leaves out other steps")
	}
	for i, m := range p.Messages {
		if b := bounds.Messages[i]; m.Due.Before(b.Due) || m.Due.After(b.DueMax) || !m.Window.Contains(b.DueMax, in.Location) {
			t.Fatalf("due %s, dry run %s to %s", m.Due, b.Due, b.DueMax)
		}
	}
	twice := in
	twice.Sequence.Steps = nil
	for _, step := range in.Sequence.Steps {
		twice.Sequence.Steps = append(twice.Sequence.Steps, step, step)
	}
	double, err := Build(twice)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range p.Messages {
		if a, b := double.Messages[2*i].Due, double.Messages[2*i+1].Due; !m.Due.Equal(a) || !m.Due.Equal(b) {
			t.Fatalf("equal timings, due %s, %s and %s", m.Due, a, b)
		}
	}
}

// TestJitterKeepsOrder checks that jitter never changes the order in which messages leave, for any seed. Messages with
// the same due time leave in the order of their steps.
func TestJitterKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawNear(t, func(t *rapid.T) Input {
			in := drawInput(t)
			if rapid.Bool().Draw(t, "close together") { // without this, most drawn steps are days apart
				for i := range in.Sequence.Steps {
					in.Sequence.Steps[i].Timing = puntuale.Timing{Jitter: rapid.SampledFrom([]int{0, 1, 600, 3600}).Draw(t, "seconds of jitter"),
						Offset: puntuale.Offset{Amount: rapid.IntRange(0, 3).Draw(t, "minutes"), Unit: puntuale.Minutes}}
				}
			}
			return in
		})
		without, err := Build(withoutJitter(in))
		if err != nil {
			t.Fatal(err)
		}
		with, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := sendingOrder(without), sendingOrder(with); !slices.Equal(got, want) {
			t.Fatalf("steps leave in the order %v, without jitter %v", got, want)
		}
	})
}

// sendingOrder returns a plan's steps in the order in which they leave.
func sendingOrder(p Plan) (steps []int) {
	all := slices.Clone(p.Messages)
	slices.SortFunc(all, func(a, b puntuale.PlannedMessage) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Step, b.Step))
	})
	for _, m := range all {
		steps = append(steps, m.Step)
	}
	return steps
}

// TestPlaceAgainstSlowModel compares the planner with a slow model for one step without jitter. The model tries one
// minute after the other, by the local time.
func TestPlaceAgainstSlowModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Now = in.Now.Truncate(time.Minute)
		in.Sequence.Steps = in.Sequence.Steps[:1]
		timing := &in.Sequence.Steps[0].Timing
		timing.Jitter, timing.IfPast = 0, puntuale.PastSkip
		p, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		var got time.Time
		if len(p.Messages) == 1 {
			got = p.Messages[0].Due
		}
		if want := slowDue(&in, timing); !got.Equal(want) {
			t.Fatalf("due %s, want %s", got.In(in.Location), want.In(in.Location))
		}
	})
}

// slowDue returns the step's due time, or zero if the step is left out.
func slowDue(in *Input, timing *puntuale.Timing) time.Time {
	anchor := in.Now
	if timing.Anchor == "f" || timing.Anchor == "g" {
		m, _ := ParseMoment(in.Fields[timing.Anchor].Text)
		anchor = m.At(slowAt(timing, DefaultTime), in.Location)
	}
	sign := 1
	if timing.Offset.Direction == puntuale.Before {
		sign = -1
	}
	wish := anchor
	switch n := sign * timing.Offset.Amount; timing.Offset.Unit {
	case puntuale.Seconds:
		wish = anchor.Add(time.Duration(n) * time.Second)
	case puntuale.Minutes:
		wish = anchor.Add(time.Duration(n) * time.Minute)
	case puntuale.Hours:
		wish = anchor.Add(time.Duration(n) * time.Hour)
	case puntuale.Months:
		wish = slowShift(timing, anchor, n, 0, in.Location)
	case puntuale.Weeks:
		wish = slowShift(timing, anchor, 0, 7*n, in.Location)
	default:
		wish = slowShift(timing, anchor, 0, n, in.Location)
	}
	own := time.Duration(-1)
	switch timing.Offset.Unit {
	case puntuale.Days, puntuale.Weeks, puntuale.Months:
		shown := wish.In(in.Location)
		own = time.Duration(shown.Hour())*time.Hour + time.Duration(shown.Minute())*time.Minute + time.Duration(shown.Second())*time.Second + time.Duration(shown.Nanosecond())
	default:
		own = slowAt(timing, own)
	}
	itself := wish.Equal(anchor)
	due := slowFit(in, timing, wish, anchor, own, itself)
	if due.Before(in.Now.Add(-puntuale.PastGrace)) {
		return time.Time{}
	}
	if due.Before(in.Now) {
		if due = slowFit(in, timing, in.Now, anchor, own, itself); due.Before(in.Now) {
			return time.Time{}
		}
	}
	return due
}

// slowAt returns the step's time of day. If the step has none, it returns the argument other.
func slowAt(timing *puntuale.Timing, other time.Duration) time.Duration {
	if timing.At == "" {
		return other
	}
	hour, _ := strconv.Atoi(timing.At[:2])
	minute, _ := strconv.Atoi(timing.At[3:])
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
}

// slowShift moves a time by months and days of the calendar, and then to the step's time of day. If a month is too
// short, it uses the month's last day.
func slowShift(timing *puntuale.Timing, from time.Time, months, days int, loc *time.Location) time.Time {
	if months == 0 && days == 0 && timing.At == "" {
		return from
	}
	local := from.In(loc)
	month := time.Date(local.Year(), local.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	day := local.Day()
	for month.AddDate(0, 0, day-1).Month() != month.Month() {
		day--
	}
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	shown := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	return slowShows(month.AddDate(0, 0, day-1+days).Add(slowAt(timing, shown.Sub(midnight))), loc)
}

// slowShows returns the first minute at which clocks show the local time in the argument wall. If clocks skip this
// time, slowShows counts elapsed time from the last minute before the gap.
func slowShows(wall time.Time, loc *time.Location) time.Time {
	shows := func(at time.Time) time.Time {
		_, offset := at.In(loc).Zone()
		return at.Add(time.Duration(offset) * time.Second)
	}
	at := wall.Add(-26 * time.Hour)
	for ; !shows(at).Equal(wall); at = at.Add(time.Minute) {
		if shows(at).After(wall) { // clocks skip the time in wall: count from the minute before the gap, as if the clocks had not changed
			before := at.Add(-time.Minute)
			return before.Add(wall.Sub(shows(before)))
		}
	}
	return at
}

func slowFit(in *Input, timing *puntuale.Timing, wish, anchor time.Time, own time.Duration, itself bool) time.Time {
	w := timing.Window
	if w != nil && w.Holidays == "avoid" {
		frozen := *w
		frozen.Closed = in.Closed
		w = &frozen
	}
	due := wish
	for !w.Contains(due, in.Location) {
		due = due.Truncate(time.Minute).Add(time.Minute)
	}
	if day := due.In(in.Location); timing.At != "" && day.Format(time.DateOnly) != wish.In(in.Location).Format(time.DateOnly) {
		again := slowShows(time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC).Add(slowAt(timing, 0)), in.Location)
		if !again.Before(due) && w.Contains(again, in.Location) {
			due = again
		}
	}
	if isBefore(*timing) && !due.Before(anchor) && (!itself || !due.Equal(wish) || !wish.Equal(anchor)) {
		if due = wish; anchor.Before(due) {
			due = anchor
		}
		due = due.Add(-time.Microsecond).Truncate(time.Minute)
		for !w.Contains(due, in.Location) {
			due = due.Add(-time.Minute)
		}
		if own >= 0 {
			return slowOwnTime(own, w, due, wish, anchor, in.Location)
		}
	}
	return due
}

// slowOwnTime looks at the opening of the window that contains the time in last. If the step's time of day in this
// opening is before the times in wish and anchor, slowOwnTime returns it. In all other cases it returns last.
func slowOwnTime(ownTime time.Duration, w *puntuale.Window, last, wish, anchor time.Time, loc *time.Location) time.Time {
	opening := func(at time.Time) string {
		local := at.In(loc)
		if w != nil && local.Format("15:04") < w.From { // the window opened on the day before
			return time.Date(local.Year(), local.Month(), local.Day()-1, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		}
		return local.Format(time.DateOnly)
	}
	day := last.In(loc)
	for back := range 2 {
		midnight := time.Date(day.Year(), day.Month(), day.Day()-back, 0, 0, 0, 0, time.UTC)
		own := slowShows(midnight.Add(ownTime), loc)
		if own.Before(wish) && own.Before(anchor) && w.Contains(own, loc) && opening(own) == opening(last) {
			return own
		}
	}
	return last
}
