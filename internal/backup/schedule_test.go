package backup

import (
	"slices"
	"testing"
	"time"

	"puntuale/internal/objectstore"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSchedule: the last planned moment is right at the moment itself, and on the days on which clocks change.
func TestSchedule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, now, want string }{
		{"03:10", "2026-11-29T03:10:00Z", "2026-11-29T03:10:00Z"},
		{"03:10", "2026-11-29T03:09:59Z", "2026-11-28T03:10:00Z"},
		{"03:10 Europe/Rome", "2026-11-29T02:10:00Z", "2026-11-29T02:10:00Z"},
		{"03:10 Europe/Rome", "2026-07-29T02:00:00Z", "2026-07-29T01:10:00Z"},
		{"02:30 Europe/Rome", "2026-03-29T12:00:00Z", "2026-03-29T01:30:00Z"}, // there is no 02:30 on this day
		{"02:30 Europe/Rome", "2026-10-25T12:00:00Z", "2026-10-25T01:30:00Z"}, // there are two, and the second counts
		{"00:00", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"},
	} {
		s, err := ParseSchedule(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Last(moment(t, c.now)); !got.Equal(moment(t, c.want)) {
			t.Errorf("%s at %s: %v, want %s", c.at, c.now, got, c.want)
		}
	}
	for _, text := range []string{"", "3:10", "24:00", "03:10 Local", "03:10 Nowhere", "03:10:00", "daily"} {
		if _, err := ParseSchedule(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestRetentionForm(t *testing.T) {
	t.Parallel()
	if r, err := ParseRetention([]string{"7d", " 4w", "12mo"}); err != nil || r != (Retention{7, 4, 12}) {
		t.Errorf("%v, %v", r, err)
	}
	for _, items := range [][]string{nil, {"7"}, {"d"}, {"0d"}, {"7d", "3d"}, {"-1w"}, {"7y"}, {"7 d"}} {
		if r, err := ParseRetention(items); err == nil {
			t.Errorf("%q is accepted: %v", items, r)
		}
	}
}

// TestRetention makes a backup every day for two years. At each day, what is kept is what the retention says, and files of
// others are never removed.
func TestRetention(t *testing.T) {
	t.Parallel()
	keep := Retention{7, 4, 12}
	var files []objectstore.File
	day := moment(t, "2025-01-01T03:10:00Z")
	for range 730 {
		files = append(files, objectstore.File{Name: Name(day, true)}, objectstore.File{Name: "notes.txt"}, objectstore.File{Name: "puntuale-2026.zip"})
		gone := keep.removable(files, time.UTC)
		files = slices.DeleteFunc(files, func(f objectstore.File) bool { return slices.Contains(gone, f.Name) })
		files = slices.Compact(slices.DeleteFunc(files, func(f objectstore.File) bool { _, ours := NameTime(f.Name); return !ours }))
		if slices.Contains(gone, "notes.txt") || slices.Contains(gone, "puntuale-2026.zip") || slices.Contains(gone, Name(day, true)) {
			t.Fatalf("removed %q", gone)
		}
		day = day.AddDate(0, 0, 1)
	}
	var kept []string
	for _, f := range Sorted(files) {
		at, _ := NameTime(f.Name)
		kept = append(kept, at.Format("060102"))
	}
	// 2026-12-31 is a Thursday. Weeks end on Sundays, months on their last day.
	want := []string{"260131", "260228", "260331", "260430", "260531", "260630", "260731", "260831", "260930", "261031", "261130",
		"261213", "261220", "261225", "261226", "261227", "261228", "261229", "261230", "261231"}
	if !slices.Equal(kept, want) {
		t.Errorf("kept\n%v, want\n%v", kept, want)
	}
	many := []objectstore.File{{Name: Name(day.Add(-72*time.Hour), true)}, {Name: Name(day, false)}, {Name: Name(day.Add(time.Minute), false)}}
	if gone := (Retention{Months: 1}).removable(many, time.UTC); !slices.Equal(gone, []string{many[0].Name}) {
		t.Errorf("%v is removed: the second one may be the only good one of the day", gone)
	}
}
