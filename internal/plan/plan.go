// Package plan computes messages, with contents and due times. Its input is a sequence, the fields of a call, a time
// zone and the current time. The package is pure: it reads no clock, does no I/O and has no state. The same input
// always gives the same plan. Therefore, a start, its dry run and the dashboard's preview all use it.
//
// The due time of a step is computed in this order:
//
//  1. The anchor (the call, or a date field) plus or minus the offset. Hours and shorter units are elapsed time. Days and
//     longer units are calendar arithmetic in the run's zone.
//  2. If the step has "at": this time of day, on the day that point 1 gives.
//  3. If the step has a window: the first time inside the window. If the window moves the step to another day, the time
//     of day "at" on that day is used, if it is inside the window.
//  4. Some steps must leave before their anchor. If the time from points 1 to 3 is not before the anchor, such a step
//     moves back to the latest earlier opening of the window. The step may have its own time of day, from "at" or from an
//     offset in days or longer units. If the opening contains this time, the step gets it. Otherwise the step gets the
//     opening's last minute.
//  5. A time that is at most five minutes in the past becomes now. For an earlier time, if_past decides.
//  6. Jitter, which ends at the end of the window. No step may leave after a step that is planned after it.
package plan

import (
	"slices"
	"time"

	"puntuale"
)

// Input contains everything that a plan depends on.
type Input struct {
	Sequence puntuale.Sequence // must have passed [Check]; a step with a template must already contain the template's content
	Phone    string            // the recipient, in the form that {{phone}} prints
	Fields   map[string]Value  // the call's body; fields that no step uses are ignored
	Location *time.Location    // zone of the run; nil: UTC
	Closed   []puntuale.Date   // the client's own holidays
	Now      time.Time         // the time of the call

	// Seed determines the jitter: with a different seed, messages get different times between their earliest and their
	// latest time. The whole run uses one seed, so that jitter never changes the order of its steps. 0 means a dry run:
	// Due is then the earliest time, and DueMax the latest.
	Seed uint64

	// Media contains the allowed file name extensions, in lower case and without the dot. nil means
	// DefaultMediaExtensions.
	Media []string

	// Files are the client's uploaded files that media may name. nil: any may be named.
	Files map[puntuale.FileID]UploadedFile
}

// UploadedFile is what a plan needs to know of an uploaded file.
type UploadedFile struct {
	Name    string          // for recipients, unless the step says another
	Refused puntuale.Reason // why the run's session cannot send it; zero: it can
}

// Plan contains the messages that a start schedules, in the order of the steps.
type Plan struct {
	Messages []puntuale.PlannedMessage
	Skipped  []puntuale.SkippedStep
}

// Codes of the reasons why a step is left out.
const (
	ReasonPast       puntuale.ReasonCode = "sequence.past"
	ReasonAnchorPast puntuale.ReasonCode = "sequence.after_anchor"
)

// Build plans a run. Its only error is a [*puntuale.Error] with CodeInvalid that contains all faults. After an error,
// the caller must schedule nothing. Faults of fields are at "body.<field>". Other faults are at "steps[2].text" or
// "steps[2].timing", where steps count from 0. Build does not change its input. But the plan and the input share the
// windows and coordinates of the steps.
func Build(in Input) (Plan, error) {
	b := newBuilder(&in)
	p := Plan{Messages: make([]puntuale.PlannedMessage, 0, len(in.Sequence.Steps))}
	var few [8]timing // most sequences are short
	timings := few[:0]
	for i := range in.Sequence.Steps {
		step := &in.Sequence.Steps[i]
		content, variant, all := b.text(i, step)
		t := timing{Timing: &step.Timing, loc: b.loc, window: b.freeze(step.Timing.Window)}
		placed, skip := b.place(i, &t)
		if skip != nil {
			p.Skipped = append(p.Skipped, *skip)
			continue
		}
		placed.Step, placed.StepID, placed.Content, placed.Variant, placed.Variants = i, step.ID, content, variant, all
		p.Messages, timings = append(p.Messages, placed), append(timings, t)
	}
	b.jitter(p.Messages, timings)
	if len(b.faults) > 0 {
		return Plan{}, puntuale.Invalid(b.faults...)
	}
	return p, nil
}

// builder contains the data that the steps of one plan share.
type builder struct {
	in      *Input
	loc     *time.Location
	now     time.Time
	start   time.Time                         // the anchor of steps that count from the call
	changes map[string]puntuale.BookingMoment // the anchors that are changes of a booking
	variant int                               // the variant of the step that is being rendered, from 1; 0: the step has none
	keeps   bool                              // true: a step whose moment is past stays in the plan, and past says why
	past    past                              // the result of the step that was placed last
	horizon time.Time
	media   []string
	names   nameList
	fields  []field // one field for each name in names, in the same order
	faults  []puntuale.Fault
	buf     []byte // the text that is being rendered
}

func newBuilder(in *Input) *builder {
	b := &builder{in: in, loc: in.Location, now: in.Now.UTC().Truncate(time.Microsecond), media: in.Media}
	if b.loc == nil {
		b.loc = time.UTC
	}
	if b.media == nil {
		b.media = DefaultMediaExtensions
	}
	b.horizon, b.start = b.now.AddDate(puntuale.HorizonYears, 0, 0), b.now
	for _, step := range puntuale.Texts(in.Sequence.Steps) {
		if anchor := step.Timing.Anchor; isFieldAnchor(anchor) {
			b.entry(anchor).date = true
		}
		for _, t := range [...]string{step.Text, step.Media, step.MediaName} {
			b.findDates(t)
		}
		for _, t := range slices.Concat(texts(step.Official), choiceTexts(step)) {
			b.findDates(t)
		}
	}
	return b
}

// isFieldAnchor reports whether an anchor is a date field.
func isFieldAnchor(anchor string) bool {
	return anchor != "" && anchor != puntuale.AnchorStart && !puntuale.BookingAnchor(anchor)
}

// findDates records which fields a text prints in a date format.
func (b *builder) findDates(text string) {
	for s := scan(text); s.next(); {
		if s.fault.IsZero() && s.field.format != "" {
			b.entry(s.field.name).date = true
		}
	}
}

// stepFault records a fault in a part of a step.
func (b *builder) stepFault(step int, part string, code puntuale.ReasonCode, args ...string) {
	b.stepReason(step, part, puntuale.Because(code, args...))
}

func (b *builder) stepReason(step int, part string, reason puntuale.Reason) {
	fault := reason.At(stepLocation("", step, variantPart(b.variant, part)), nil)
	if b.variant == 0 || !reported(b.faults, fault) {
		b.faults = append(b.faults, fault)
	}
}
