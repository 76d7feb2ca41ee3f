package icalendar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

// TestRuleSkips: a rule that begins years ago has the same occurrences in the period, whether the days before are
// skipped or not. The library alone is the model.
func TestRuleSkips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, from ...string) string {
			list := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 3, rapid.ID[string]).Draw(t, name)
			if len(list) == 0 {
				return ""
			}
			return ";" + name + "=" + strings.Join(list, ",")
		}
		frequency := rapid.SampledFrom([]string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}).Draw(t, "frequency")
		text := fmt.Sprintf("FREQ=%s;INTERVAL=%d", frequency, rapid.IntRange(1, 7).Draw(t, "interval"))
		text += some("BYMONTH", "1", "2", "6", "12") + some("BYMONTHDAY", "1", "-1", "29", "31", "15") + some("BYHOUR", "9", "18")
		switch days := some("BYDAY", "MO", "WE", "SU"); {
		case days != "":
			text += days
		case frequency == "MONTHLY":
			text += some("BYDAY", "1MO", "-1FR", "5WE")
		}
		if strings.Count(text, "BY") > 0 && frequency != "WEEKLY" { // the library's first week is not a whole one
			text += some("BYSETPOS", "1", "-1", "2")
		}
		if rapid.Bool().Draw(t, "sunday") {
			text += ";WKST=SU"
		}
		start := time.Date(rapid.IntRange(1995, 2026).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), rapid.IntRange(1, 31).Draw(t, "day"), 9, 30, 0, 0, time.UTC)
		first := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
		last := first.AddDate(rapid.IntRange(0, 3).Draw(t, "years"), 2, 0)

		option, err := rrule.StrToROption(text)
		if err != nil {
			t.Fatal(err)
		}
		option.Dtstart = start
		model, err := rrule.NewRRule(*option)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		if !start.Before(first) && !start.After(last) {
			want = append(want, start.String())
		}
		for _, wall := range model.Between(first, last, true) {
			if !slices.Contains(want, wall.String()) {
				want = append(want, wall.String())
			}
		}
		var got []string
		r := parseRule(text)
		if problem := r.each(start, first, last, &effort{maxFeedEffort}, func(wall time.Time) bool {
			if !wall.Before(first) && !wall.After(last) {
				got = append(got, wall.String())
			}
			return true
		}); problem != "" {
			t.Fatalf("%s: %s", text, problem)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s from %v:\n%v\nwant\n%v", text, start, got, want)
		}
	})
}
