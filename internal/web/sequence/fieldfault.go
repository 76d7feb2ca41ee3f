package sequence

import (
	"context"
	"puntuale/internal/web/view"
	"slices"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// unfinished reports whether a fault is only about an empty field. The editor does not show such faults while the
// person writes, but only after the person saves.
func unfinished(f puntuale.Fault) bool {
	switch f.Code {
	case puntuale.FaultRequired, puntuale.FaultSequenceNothingToShow, puntuale.FaultSequenceNothingToShowOrTemplate:
		return true
	case puntuale.FaultSequenceNotField:
		return slices.Equal(f.Args, []string{""}) // the text contains {{}}
	}
	return false
}

// stepLabels contains the text keys of the labels of a step's fields.
var stepLabels = map[string]string{
	".text": "step.words", ".media": "step.media_url", ".media_name": "step.media_name", ".latitude": "step.latitude", ".longitude": "step.longitude",
	".template": "step.template", ".timing.at": "timing.clock_label", ".timing.offset.amount": "timing.amount", ".timing.anchor": "timing.anchor",
	".timing.anchor_new": "timing.anchor_new", ".timing.jitter": "timing.jitter", ".timing.valid_for": "timing.valid_for", ".timing.valid_for.amount": "timing.valid_for",
}

// explained returns the sentence of a step's fault, with the name of the field. If a text is too long, explained also
// says by how many characters.
func (t Try) explained(ctx context.Context, step int, part, reason string) string {
	if key := stepLabels[part]; key != "" {
		reason = view.T(ctx, key) + ": " + reason
	}
	for _, of := range []string{".text_", ".template_"} {
		if letter, ok := strings.CutPrefix(part, of); ok {
			reason = view.T(ctx, "campaign.variant", "Key", strings.ToUpper(letter)) + ": " + reason
		}
	}
	if part != ".text" || step >= len(t.Steps) {
		return reason
	}
	limit := puntuale.MaxText
	if t.Steps[step].Media != "" {
		limit = puntuale.MaxCaption
	}
	if excess := utf8.RuneCountInString(t.Steps[step].Text) - limit; excess > 0 {
		reason += " (" + view.T(ctx, "preview.over", "N", excess) + ")"
	}
	return reason
}
