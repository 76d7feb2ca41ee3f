package calendar

import (
	"context"

	"puntuale"
	"puntuale/internal/web/view"
)

func (e Editor) heading(ctx context.Context) string {
	if e.Calendar.ID == 0 {
		return view.T(ctx, "feed.new")
	}
	return view.T(ctx, "feed.edit_heading")
}

// action returns the address to which the form is posted. back returns the address of the page before the form.
func (e Editor) action(ctx context.Context) string {
	if e.Calendar.ID == 0 {
		return view.Base(ctx) + "/calendars"
	}
	return url(ctx, e.Calendar.ID, "/edit")
}

func (e Editor) back(ctx context.Context) string {
	if e.Calendar.ID == 0 {
		return view.Base(ctx) + "/calendars"
	}
	return url(ctx, e.Calendar.ID, "")
}

func (e Editor) backName(ctx context.Context) string {
	return view.Or(e.Calendar.Name, view.T(ctx, "feed.heading"))
}

// sources are the choices for each place in the order of the sources.
func sources(ctx context.Context) []view.Option {
	all := []view.Option{{Text: "–"}}
	for _, s := range puntuale.CalendarSources() {
		word := s
		if s == "description" { // which the files of texts reserve
			word = "notes"
		}
		all = append(all, view.Option{Value: s, Text: view.T(ctx, "feed.where."+word)})
	}
	return all
}

func (d Detail) none(ctx context.Context) string {
	if d.Problems {
		return view.T(ctx, "feed.no_problems")
	}
	return view.T(ctx, "feed.no_entries")
}

// when shows the start of an entry.
func when(ctx context.Context, e puntuale.CalendarEntry) string {
	switch {
	case e.Start.IsZero():
		return "–"
	case e.AllDay:
		return view.FrameOf(ctx).Language.LongDay(e.Start.In(view.FrameOf(ctx).Zone))
	}
	return view.Dated(ctx, e.Start)
}

// dayOf returns the address of the appointments of an entry's day. weekOf returns that of its week.
func dayOf(ctx context.Context, e puntuale.CalendarEntry) string {
	return view.Base(ctx) + "/bookings?day=" + puntuale.DateOf(e.Start.In(view.FrameOf(ctx).Zone)).String()
}

func weekOf(ctx context.Context, e puntuale.CalendarEntry) string {
	return dayOf(ctx, e) + "&view=week"
}

// atOnce returns the text of the first message that everybody gets as soon as the booking is made, or "".
func atOnce(s puntuale.Sequence) string {
	for _, step := range s.Steps {
		if step.Timing.Anchor == puntuale.AnchorStart && step.Timing.Offset.Amount == 0 && step.WantedIn(puntuale.BookingOpen) {
			return step.Text
		}
	}
	return ""
}
