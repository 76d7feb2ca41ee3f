package sequence

import (
	"context"
	"puntuale/internal/web/view"
	"slices"
	"strings"

	"puntuale"
)

// bookingAnchors are the anchors that are moments of a booking, in the order in which they usually happen.
var bookingAnchors = []string{puntuale.BookingMovedAnchor, puntuale.BookingConfirmedAnchor, puntuale.BookingCancelledAnchor, puntuale.BookingArrivedAnchor, puntuale.BookingNoShowAnchor}

// mainDate returns the main date field. If the person has not chosen one yet, it is the first one that is offered.
func (e Editor) mainDate(usual string) string {
	if name := mainDate(e.Form); name != "" {
		return name
	}
	return e.mainDates(usual, "")[0].Value
}

// mainDates returns the fields that may become the main date: dates first, then the usual one, then other fields. The
// last option makes a new field.
func (e Editor) mainDates(usual, other string) (all []view.Option) {
	add := func(name string) {
		if name != "" && name != "+" && !slices.ContainsFunc(all, func(o view.Option) bool { return o.Value == name }) {
			all = append(all, view.Option{Value: name, Text: name})
		}
	}
	kinds := []puntuale.FieldKind{puntuale.FieldDate, "", puntuale.FieldText}
	for _, kind := range kinds {
		if kind == "" {
			add(e.Form.Value("booking"))
			add(usual)
		}
		for _, f := range e.Try.Fields {
			if f.Kind == kind {
				add(f.Name)
			}
		}
	}
	return append(all, view.Option{Value: "+", Text: other})
}

// unset returns the key of the words that say in which statuses a step is wanted if none is chosen, as
// [puntuale.Step.WantedIn] does.
func (e Editor) unset(step string) string {
	direction, anchor := e.Form.Value(step+".timing.offset.direction"), e.anchor(step)
	if puntuale.BookingAnchor(direction) {
		anchor = direction
	}
	switch {
	case direction == "now" || direction == "" || anchor == puntuale.BookingMovedAnchor:
	case puntuale.BookingAnchor(anchor):
		return strings.TrimPrefix(anchor, "booking.")
	case direction != string(puntuale.Before) && anchor != puntuale.AnchorStart:
		return "after"
	}
	return "open"
}

// unsetWords returns the words for each result of the method unset.
func unsetWords(ctx context.Context) map[string]string {
	words := map[string]string{}
	for _, key := range []string{"open", "after", "confirmed", "cancelled", "arrived", "no_show"} {
		words[key] = view.T(ctx, "step.only_if_unset."+key)
	}
	return words
}

// onlyIfWords says in which statuses of a booking a step is wanted, such as " · solo se annullato". It returns "" if the
// step does not choose any.
func onlyIfWords(ctx context.Context, s puntuale.Step) string {
	words := make([]string, len(s.OnlyIf))
	for i, status := range s.OnlyIf {
		words[i] = view.T(ctx, "step.only_if."+status)
	}
	if len(words) == 0 {
		return ""
	}
	return " · " + view.T(ctx, "step.only_if_words", "Statuses", strings.Join(words, ", "))
}

// changeWords describes a step that counts from a change of a booking.
func changeWords(ctx context.Context, t puntuale.Timing) string {
	change := view.T(ctx, "timing."+t.Anchor)
	switch {
	case t.Offset.Amount == 0 && t.At == "":
		return view.T(ctx, "timing.upon."+t.Anchor)
	case t.Offset.Amount == 0:
		return view.T(ctx, "timing.day_of_change", "Change", change)
	}
	return view.T(ctx, "timing.after_change", "Span", view.T(ctx, "timing.span."+string(t.Offset.Unit), "N", t.Offset.Amount), "Change", change)
}
