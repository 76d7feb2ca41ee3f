package sequence

import (
	"cmp"
	"context"
	"net/url"
	"puntuale/internal/web/view"
	"slices"
	"strings"

	"puntuale"
)

// fieldLabel returns the label of a field in the form that starts a sequence.
func fieldLabel(ctx context.Context, name string) string {
	if field, ok := strings.CutPrefix(name, "fields."); ok {
		return view.FieldName(field)
	}
	return view.T(ctx, "start.phone")
}

// The method nothing returns the text key of an explanation why the timeline is empty. Faults are shown above the
// timeline, but an empty field is not a fault.
func (t Try) nothing(ctx context.Context) string {
	switch {
	case slices.ContainsFunc(t.notes(ctx), func(n note) bool { return n.tone == "bad" }):
		return "preview.none_faulty"
	case len(t.Skipped) > 0:
		return "preview.none_past"
	}
	return "preview.none"
}

// notYet returns the text key of an explanation why there is no preview.
func (s Starting) notYet() string {
	if s.Wrong {
		return "preview.none_faulty"
	}
	return "start.not_yet"
}

// heading describes in a few words what a start did.
func (s Started) heading() string {
	switch {
	case s.Running == "skip":
		return "start.nothing_new"
	case len(s.Messages) == 0:
		return "start.nothing_planned"
	}
	return "start.done"
}

func (s Started) summary(ctx context.Context) string {
	if len(s.Messages) == 0 {
		return view.T(ctx, "start.all_past")
	}
	phone := view.ShownPhone(ctx, s.Messages[0].Phone)
	if s.Running == "skip" {
		return view.T(ctx, "start.was_running.skip", "Phone", phone)
	}
	return view.T(ctx, "start.done_text", "N", len(s.Messages), "Phone", phone)
}

// outcome returns the reason why a message did not leave, or the zero reason.
func outcome(m puntuale.MessageDetail) puntuale.Reason {
	if m.State == puntuale.Failed {
		return m.Reason
	}
	return puntuale.Reason{}
}

// startedStep is one step of a start: its message, or nil if the step was skipped.
type startedStep struct {
	number  int // in the sequence, from 1
	message *puntuale.MessageDetail
}

// steps returns the steps of a start in the order of the sequence.
func (s Started) steps() []startedStep {
	var all []startedStep
	for i := range s.Messages {
		all = append(all, startedStep{s.Messages[i].OfSequence + 1, &s.Messages[i]})
	}
	for _, n := range s.Skipped {
		all = append(all, startedStep{number: n})
	}
	slices.SortStableFunc(all, func(a, b startedStep) int { return cmp.Compare(a.number, b.number) })
	return all
}

// listQuery returns the query of the list of this person's messages.
func (s Started) listQuery() string {
	query := url.Values{"sequence": {s.ID.String()}}
	if len(s.Messages) > 0 && s.Messages[0].Phone != "" {
		query.Set("phone", s.Messages[0].Phone)
	}
	return "/messages?" + query.Encode()
}
