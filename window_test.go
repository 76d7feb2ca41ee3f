package puntuale_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"puntuale"
)

var office = puntuale.Window{Weekdays: []int{1, 2, 3, 4, 5}, From: "09:00", To: "18:00", Holidays: "avoid"}

// wall reads a local time: "2006-01-02 15:04", optionally with seconds ":05". If the time occurs twice, it returns
// the first occurrence.
func wall(t interface{ Fatal(...any) }, text string, loc *time.Location) time.Time {
	form := time.DateTime[:len(text)]
	at, err := time.Parse(form, text)
	if err != nil {
		t.Fatal(err)
	}
	return puntuale.DateOf(at).At(at.Sub(at.Truncate(24*time.Hour)), loc)
}

func TestWindowNext(t *testing.T) {
	t.Parallel()
	nights := puntuale.Window{Weekdays: []int{5}, From: "22:00", To: "06:00"}
	for _, c := range []struct {
		name   string
		window puntuale.Window
		from   string
		want   string
	}{
		{"inside", office, "2026-11-20 10:30", "2026-11-20 10:30"},
		{"opening is inside", office, "2026-11-20 09:00", "2026-11-20 09:00"},
		{"early", office, "2026-11-20 08:59", "2026-11-20 09:00"},
		{"closing is outside, and a week-end follows", office, "2026-11-20 18:00", "2026-11-23 09:00"},
		{"Christmas, Boxing Day and a week-end", office, "2026-12-24 18:00", "2026-12-28 09:00"},
		{"Easter Monday", office, "2026-04-03 18:00", "2026-04-07 09:00"},
		{"own dates", puntuale.Window{Closed: []puntuale.Date{{Year: 2026, Month: 11, Day: 20}}}, "2026-11-20 10:30", "2026-11-21 00:00"},
		{"Friday's night", nights, "2026-11-20 12:00", "2026-11-20 22:00"},
		{"it reaches into Saturday", nights, "2026-11-21 05:59", "2026-11-21 05:59"},
		{"until six", nights, "2026-11-21 06:00", "2026-11-27 22:00"},
		{"Thursday's is not meant", nights, "2026-11-20 03:00", "2026-11-20 22:00"},
		{"the night of a holiday is its own", puntuale.Window{From: "22:00", To: "06:00", Holidays: "avoid"}, "2026-12-26 02:00", "2026-12-27 22:00"},
		{"the night before reaches into it", puntuale.Window{From: "22:00", To: "06:00", Holidays: "avoid"}, "2026-12-25 02:00", "2026-12-25 02:00"},
		{"until midnight", puntuale.Window{From: "20:00", To: "00:00"}, "2026-11-21 00:00", "2026-11-21 20:00"},
		{"days only", puntuale.Window{Weekdays: []int{7}}, "2026-11-20 10:30", "2026-11-22 00:00"},
		{"a skipped opening: when the clocks jump into it", puntuale.Window{From: "02:30", To: "05:00"}, "2026-03-29 01:00", "2026-03-29 03:00"},
		{"a skipped window waits a day", puntuale.Window{From: "02:00", To: "03:00"}, "2026-03-29 00:00", "2026-03-30 02:00"},
		{"a repeated opening: the first", puntuale.Window{From: "02:30", To: "05:00"}, "2026-10-25 00:00", "2026-10-25 02:30"},
	} {
		loc := zone(t, "Europe/Rome")
		from, want := wall(t, c.from, loc), wall(t, c.want, loc)
		got, ok := c.window.Next(from, loc)
		if !ok || !got.Equal(want) {
			t.Errorf("%s: from %s to %s (%t), want %s", c.name, c.from, got.In(loc), ok, c.want)
		}
		if inside := c.window.Contains(from, loc); inside != from.Equal(want) {
			t.Errorf("%s: contains says %t", c.name, inside)
		}
	}
}

// TestWindowRepeatedHour: clocks show the hour from 02:00 to 03:00 twice, so the window opens twice. The time between
// the two openings is outside the window.
func TestWindowRepeatedHour(t *testing.T) {
	t.Parallel()
	loc := zone(t, "Europe/Rome")
	w := puntuale.Window{From: "02:00", To: "02:30"}
	first := wall(t, "2026-10-25 02:00", loc)
	for minutes, want := range map[int]bool{-1: false, 0: true, 29: true, 30: false, 59: false, 60: true, 89: true, 90: false} {
		if got := w.Contains(first.Add(time.Duration(minutes)*time.Minute), loc); got != want {
			t.Errorf("%d minutes after the first 02:00: %t", minutes, got)
		}
	}
	if got, _ := w.Next(first.Add(30*time.Minute), loc); !got.Equal(first.Add(time.Hour)) {
		t.Errorf("after the first opening comes %s", got.In(loc))
	}
	if got := w.Until(first, loc, time.Hour); !got.Equal(first.Add(30 * time.Minute)) {
		t.Errorf("the first opening ends at %s", got.In(loc))
	}
}

func TestWindowLast(t *testing.T) {
	t.Parallel()
	loc := zone(t, "Europe/Rome")
	for _, c := range []struct {
		name   string
		window *puntuale.Window
		before string
		want   string
	}{
		{"over the week-end", &office, "2026-11-23 09:00", "2026-11-20 17:59"},
		{"inside", &office, "2026-11-23 09:01", "2026-11-23 09:00"},
		{"inside, between minutes", &office, "2026-11-23 10:00:30", "2026-11-23 10:00"},
		{"after hours", &office, "2026-11-23 23:00", "2026-11-23 17:59"},
		{"over a holiday", &office, "2026-12-28 08:00", "2026-12-24 17:59"},
		{"a night", &puntuale.Window{Weekdays: []int{5}, From: "22:00", To: "06:00"}, "2026-11-23 10:00", "2026-11-21 05:59"},
		{"days only", &puntuale.Window{Weekdays: []int{7}}, "2026-11-23 00:00", "2026-11-22 23:59"},
		{"no window", nil, "2026-11-23 09:00", "2026-11-23 08:59"},
		{"before the clocks jump", &puntuale.Window{From: "01:00", To: "02:30"}, "2026-03-29 05:00", "2026-03-29 01:59"},
	} {
		got, ok := c.window.Last(wall(t, c.before, loc), loc)
		if want := wall(t, c.want, loc); !ok || !got.Equal(want) {
			t.Errorf("%s: %s (%t), want %s", c.name, got.In(loc), ok, c.want)
		}
	}
}

func TestWindowUntil(t *testing.T) {
	t.Parallel()
	loc := zone(t, "Europe/Rome")
	for _, c := range []struct {
		name   string
		window *puntuale.Window
		from   string
		want   string
	}{
		{"closing", &office, "2026-11-20 10:30", "2026-11-20 18:00"},
		{"whole days run on over midnight", &puntuale.Window{Weekdays: []int{5, 6}}, "2026-11-20 10:30", "2026-11-22 00:00"},
		{"a night", &puntuale.Window{From: "22:00", To: "06:00"}, "2026-11-20 23:00", "2026-11-21 06:00"},
		{"never", nil, "2026-11-20 10:30", "2026-11-22 10:30"},
		{"further away than asked", &puntuale.Window{Weekdays: []int{5, 6, 7}}, "2026-11-20 10:30", "2026-11-22 10:30"},
		{"outside", &office, "2026-11-20 20:00", "2026-11-20 20:00"},
		{"over a skipped hour", &puntuale.Window{From: "01:00", To: "05:00"}, "2026-03-29 01:30", "2026-03-29 05:00"},
		{"over a repeated hour", &puntuale.Window{From: "01:00", To: "05:00"}, "2026-10-25 01:30", "2026-10-25 05:00"},
	} {
		got := c.window.Until(wall(t, c.from, loc), loc, 48*time.Hour)
		if want := wall(t, c.want, loc); !got.Equal(want) {
			t.Errorf("%s: %s, want %s", c.name, got.In(loc), c.want)
		}
	}
}

func TestWindowThatNeverOpens(t *testing.T) {
	t.Parallel()
	var all []puntuale.Date
	for d := (puntuale.Date{Year: 2023, Month: 1, Day: 1}); d.Year < 2030; d = d.AddDays(1) {
		all = append(all, d)
	}
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	for _, w := range []puntuale.Window{{Closed: all}, {From: "09:00", To: "09:00"}, {From: "9", To: "18:00"}, {Weekdays: []int{8}}} {
		if got, ok := w.Next(now, time.UTC); ok {
			t.Errorf("%.40v opens at %s", w, got)
		}
		if got, ok := w.Last(now, time.UTC); ok {
			t.Errorf("%.40v was open at %s", w, got)
		}
		if w.Contains(now, time.UTC) {
			t.Errorf("%.40v contains now", w)
		}
	}
}

func TestWindowCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window puntuale.Window
		want   string
	}{
		{puntuale.Window{}, ""},
		{office, ""},
		{puntuale.Window{From: "22:00", To: "06:00"}, ""},
		{puntuale.Window{Weekdays: []int{0, 3, 8}}, "weekdays[0] weekdays[2]"},
		{puntuale.Window{From: "09:00"}, "to"},
		{puntuale.Window{To: "09:00"}, "from"},
		{puntuale.Window{From: "9:00", To: "24:00"}, "from to"},
		{puntuale.Window{From: "09:00", To: "09:00"}, "to"},
		{puntuale.Window{Weekdays: []int{9}, From: "x", To: "18:00", Holidays: "skip"}, "weekdays[0] from holidays"},
	} {
		var got []string
		for _, f := range c.window.Check() {
			got = append(got, f.Location)
		}
		if found := strings.Join(got, " "); found != c.want {
			t.Errorf("%+v: faults at %q, want %q", c.window, found, c.want)
		}
	}
}

// slowWindow is a simple model of Window: it checks each minute by the printed local time. Tests compare Window with
// it.
type slowWindow struct {
	puntuale.Window
	loc *time.Location
}

func (w slowWindow) contains(t time.Time) bool {
	local := t.In(w.loc)
	today := puntuale.DateOf(local)
	at := local.Format("15:04")
	switch {
	case w.From == "" && w.To == "":
		return w.begins(today)
	case w.From < w.To:
		return at >= w.From && at < w.To && w.begins(today)
	}
	return at >= w.From && w.begins(today) || at < w.To && w.begins(today.AddDays(-1))
}

func (w slowWindow) begins(d puntuale.Date) bool {
	return (len(w.Weekdays) == 0 || slices.Contains(w.Weekdays, d.Weekday())) &&
		(w.Holidays == "" || !d.IsHoliday()) && !slices.Contains(w.Closed, d)
}

const slowReach = 10 * 24 * 60 // minutes

func drawWindow(t *rapid.T) puntuale.Window {
	clock := rapid.Custom(func(t *rapid.T) string {
		return time.Unix(0, 0).UTC().Add(15 * time.Minute * time.Duration(rapid.IntRange(0, 95).Draw(t, "quarter"))).Format("15:04")
	})
	w := puntuale.Window{Weekdays: rapid.SliceOfNDistinct(rapid.IntRange(1, 7), 0, 7, rapid.ID[int]).Draw(t, "weekdays")}
	if rapid.Bool().Draw(t, "hours") {
		w.From, w.To = clock.Draw(t, "from"), clock.Draw(t, "to")
		if w.From == w.To {
			w.From, w.To = "", ""
		}
	}
	w.Holidays = rapid.SampledFrom([]string{"", "avoid"}).Draw(t, "holidays")
	return w
}

// drawMoment returns a random time. Times near clock changes and holidays are more frequent than other times.
func drawMoment(t *rapid.T) time.Time {
	near := rapid.SampledFrom([]string{"2026-03-29", "2026-10-25", "2026-03-08", "2026-11-01", "2026-10-03", "2026-04-04",
		"2026-02-15", "2026-03-22", "2011-12-29", "2018-11-04", "2018-02-17", "2026-12-24", "2026-04-04", "2026-07-15"}).Draw(t, "near")
	at, _ := time.Parse(time.DateOnly, near)
	at = at.Add(time.Duration(rapid.IntRange(-24*60, 48*60).Draw(t, "minutes")) * time.Minute)
	return at.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 30_000_000}).Draw(t, "micros")) * time.Microsecond)
}

func TestWindowAgainstSlowModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		w, at := drawWindow(t), drawMoment(t)
		slow := slowWindow{w, loc}
		if got, want := w.Contains(at, loc), slow.contains(at); got != want {
			t.Fatalf("contains %s: %t, want %t", at.In(loc), got, want)
		}
		compareNext(t, slow, at)
		compareLast(t, slow, at)
		compareUntil(t, slow, at)
	})
}

func compareNext(t *rapid.T, w slowWindow, at time.Time) {
	want := at
	for i := 0; i < slowReach && !w.contains(want); i++ {
		want = want.Truncate(time.Minute).Add(time.Minute)
	}
	got, ok := w.Next(at, w.loc)
	if !ok {
		t.Fatalf("never opens after %s", at.In(w.loc))
	}
	if w.contains(want) && !got.Equal(want) || got.Before(want) {
		t.Fatalf("next after %s: %s, want %s", at.In(w.loc), got.In(w.loc), want.In(w.loc))
	}
}

func compareLast(t *rapid.T, w slowWindow, at time.Time) {
	want := at.Add(-time.Microsecond).Truncate(time.Minute)
	for i := 0; i < slowReach && !w.contains(want); i++ {
		want = want.Add(-time.Minute)
	}
	got, ok := w.Last(at, w.loc)
	if !ok {
		t.Fatalf("was never open before %s", at.In(w.loc))
	}
	if w.contains(want) && !got.Equal(want) || got.After(want) {
		t.Fatalf("last before %s: %s, want %s", at.In(w.loc), got.In(w.loc), want.In(w.loc))
	}
}

func compareUntil(t *rapid.T, w slowWindow, at time.Time) {
	const limit = 25 * time.Hour
	want := at
	for w.contains(want) && want.Before(at.Add(limit)) {
		want = want.Truncate(time.Minute).Add(time.Minute)
	}
	if want.After(at.Add(limit)) {
		want = at.Add(limit)
	}
	if got := w.Until(at, w.loc, limit); !got.Equal(want) {
		t.Fatalf("open from %s until %s, want %s", at.In(w.loc), got.In(w.loc), want.In(w.loc))
	}
}

func BenchmarkWindowNext(b *testing.B) {
	loc := zone(b, "Europe/Rome")
	at := wall(b, "2026-12-24 18:00", loc)
	b.ReportAllocs()
	for b.Loop() {
		office.Next(at, loc)
	}
}

func BenchmarkWindowContains(b *testing.B) {
	loc := zone(b, "Europe/Rome")
	at := wall(b, "2026-11-20 10:30", loc)
	b.ReportAllocs()
	for b.Loop() {
		office.Contains(at, loc)
	}
}
