package booking

import (
	"context"
	"puntuale/internal/web/view"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// Moving is the page on which a person gives a booking another date.
type Moving struct {
	Row
	Form       *view.Form
	Difference *Difference // nil: the date is not complete, or wrong
	Seen       string      // what the person sees, for the form
	Changed    bool        // the person saw another difference than the present one
	Past       bool        // the new date has passed
	Same       bool        // the new date is the present one
}

// Difference is what a change of a booking does to its messages.
type Difference struct {
	Lines    []Line
	Stays    int  // messages that stay as they are
	Reopened bool // the change takes a confirmation back
}

// Line is what becomes of one message.
type Line struct {
	Kind string    // new, moved, text, gone, flying or skipped
	From time.Time // when the former message would have left; zero: there was none
	To   time.Time // when the message leaves; zero: it does not
	Text string
	Why  puntuale.Reason // why it leaves no more, or not at all
}

// differenceOf returns what a change does, or would do. details contains the messages of the state before.
func differenceOf(ctx context.Context, a control.BookingAnswer, details map[puntuale.MessageID]*puntuale.MessageDetail) *Difference {
	d := &Difference{Stays: len(a.BookingDifference.Pending)}
	text := func(i int) string {
		if m := details[a.Before[i].Message]; m != nil {
			return view.Summary(ctx, *m)
		}
		return ""
	}
	replaced := map[int]bool{}
	for _, n := range a.New {
		line := Line{Kind: "new", To: n.Due, Text: view.Summary(ctx, puntuale.MessageDetail{Content: n.Content})}
		if n.Before >= 0 {
			replaced[n.Before] = true
			if line.Kind, line.From = "moved", a.Before[n.Before].Planned(); line.From.Equal(n.Due) { // only what it says is new
				line.Kind, line.From = "text", time.Time{}
			}
		}
		d.Lines = append(d.Lines, line)
	}
	for _, w := range a.Withdraw {
		if !replaced[w.Step] {
			d.Lines = append(d.Lines, Line{Kind: "gone", From: a.Before[w.Step].Planned(), Text: text(w.Step), Why: puntuale.Because(w.Reason)})
		}
	}
	for _, i := range a.InFlight {
		d.Lines = append(d.Lines, Line{Kind: "flying", From: a.Before[i].Planned(), Text: text(i)})
	}
	for _, s := range a.Skipped {
		d.Lines = append(d.Lines, Line{Kind: "skipped", From: s.Moment, Why: s.Reason})
	}
	slices.SortStableFunc(d.Lines, func(a, b Line) int { return a.at().Compare(b.at()) })
	return d
}

// at returns the moment by which a line is sorted.
func (l Line) at() time.Time {
	if !l.To.IsZero() {
		return l.To
	}
	return l.From
}

func (l Line) tone() string {
	switch l.Kind {
	case "new", "moved":
		return "ok"
	case "text":
		return "info"
	case "flying":
		return "wait"
	}
	return "quiet"
}

func (l Line) icon() string {
	switch l.Kind {
	case "new":
		return "plus"
	case "moved":
		return "arrow-right"
	case "text":
		return "pencil"
	case "flying":
		return "send"
	}
	return "ban"
}
