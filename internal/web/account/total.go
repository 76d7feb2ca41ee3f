package account

import (
	"context"
	"puntuale/internal/web/view"
	"slices"
	"time"

	"puntuale"
)

func sum(days []puntuale.DayTotal) (t puntuale.DayTotal) {
	for _, d := range days {
		t.Sent, t.Failed, t.Pending = t.Sent+d.Sent, t.Failed+d.Failed, t.Pending+d.Pending
	}
	return t
}

// newestFirst returns the days that have messages, newest first.
func newestFirst(days []puntuale.DayTotal) []puntuale.DayTotal {
	all := slices.DeleteFunc(slices.Clone(days), func(d puntuale.DayTotal) bool { return d.Sent == 0 && d.Failed == 0 && d.Pending == 0 })
	slices.Reverse(all)
	return all
}

// totalBars returns the chart of days. The first day of each week has a label.
func totalBars(ctx context.Context, days []puntuale.DayTotal) view.Bars {
	b := view.Bars{Label: view.T(ctx, "totals.chart"), Kinds: []view.Kind{{Name: view.T(ctx, "totals.sent"), Tone: "ok"}, {Name: view.T(ctx, "totals.failed"), Tone: "bad"}, {Name: view.T(ctx, "totals.pending"), Tone: "wait"}}}
	for i, d := range days {
		day := view.BarDay{Title: view.FrameOf(ctx).Language.ListedDay(d.Day), Values: []int64{d.Sent, d.Failed, d.Pending}}
		if i%7 == 0 && i+3 < len(days) {
			day.Name = view.FrameOf(ctx).Language.ShortDay(d.Day)
		}
		b.Days = append(b.Days, day)
	}
	return b
}

// daysBetween returns the number of days from one day to another.
func daysBetween(from, to puntuale.Date) int {
	return int(to.At(0, time.UTC).Sub(from.At(0, time.UTC)) / (24 * time.Hour))
}
