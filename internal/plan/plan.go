// Package plan turns a sequence, a call's fields, a time zone and the present moment into messages with their contents and moments. It is
// pure: it reads no clock, does no I/O and keeps no state. The same input always gives the same plan. So the start call, its dry run and
// the dashboard's preview share it.
//
// A step's moment is computed in this order:
//
//  1. the anchor (the call, or a date field) and the offset from it: hours and shorter are elapsed time, days and
//     longer are calendar arithmetic in the run's zone;
//  2. "at", a time of day on the day reached;
//  3. the window: the first moment inside it; when that is on another day, "at" on that day, if the window holds it;
//  4. for a step before its anchor that would now be at or past it: back to the latest earlier opening of the window,
//     to the step's own time of day ("at", or units of days and up) where that opening holds it, else to its last minute;
//  5. when the moment has passed: up to five minutes ago is now, older is for if_past to decide;
//  6. jitter, cut at the window's end, and so that no step passes one that is planned after it.
package plan

import (
	"time"

	"puntuale"
)

// Input is everything a plan depends on.
type Input struct {
	Sequence puntuale.Sequence // must have passed [Check]; steps that name a template hold its content
	Phone    string            // the recipient, as {{phone}} prints it
	Fields   map[string]Value  // the call's body; those that no step names are ignored
	Location *time.Location    // the run's zone; nil: UTC
	Closed   []puntuale.Date   // the client's own holidays
	Now      time.Time         // the moment of the call

	// Seed decides jitter: each seed gives another moment between the earliest and the latest. One seed serves the
	// whole run: jitter never changes the order of its steps. 0 is a dry run: Due is the earliest moment, DueMax the
	// latest.
	Seed uint64

	// Media lists the allowed file name extensions, in lower case and without the dot; nil means DefaultMediaExtensions.
	Media []string
}

// Plan is what a start schedules, in step order.
type Plan struct {
	Messages []puntuale.PlannedMessage
	Skipped  []puntuale.SkippedStep
}

// Why a step was left out.
const (
	ReasonPast       puntuale.ReasonCode = "sequence.past"
	ReasonAnchorPast puntuale.ReasonCode = "sequence.after_anchor"
)

// Build plans a run. Its only error is a [*puntuale.Error] with CodeInvalid that names all faults at once. Faults of fields are at
// "body.<field>", others at "steps[2].text" or "steps[2].timing", with steps counted from 0. Then nothing may be scheduled. It changes
// nothing in its input, but the plan shares the steps' windows and coordinates with it.
func Build(in Input) (Plan, error) {
	b := newBuilder(&in)
	p := Plan{Messages: make([]puntuale.PlannedMessage, 0, len(in.Sequence.Steps))}
	var few [8]timing // most sequences are short
	timings := few[:0]
	for i := range in.Sequence.Steps {
		step := &in.Sequence.Steps[i]
		content := b.content(i, step)
		t := timing{Timing: &step.Timing, loc: b.loc, window: b.freeze(step.Timing.Window)}
		placed, skip := b.place(i, &t)
		if skip != nil {
			p.Skipped = append(p.Skipped, *skip)
			continue
		}
		placed.Step, placed.Content = i, content
		p.Messages, timings = append(p.Messages, placed), append(timings, t)
	}
	b.jitter(p.Messages, timings)
	if len(b.faults) > 0 {
		return Plan{}, puntuale.Invalid(b.faults...)
	}
	return p, nil
}

// builder has the data that the steps of one plan share.
type builder struct {
	in      *Input
	loc     *time.Location
	now     time.Time
	horizon time.Time
	media   []string
	names   nameList
	fields  []field // of names
	faults  []puntuale.Fault
	buf     []byte // of the text being rendered
}

func newBuilder(in *Input) *builder {
	b := &builder{in: in, loc: in.Location, now: in.Now.UTC().Truncate(time.Microsecond), media: in.Media}
	if b.loc == nil {
		b.loc = time.UTC
	}
	if b.media == nil {
		b.media = DefaultMediaExtensions
	}
	b.horizon = b.now.AddDate(puntuale.HorizonYears, 0, 0)
	for i := range in.Sequence.Steps {
		step := &in.Sequence.Steps[i]
		if anchor := step.Timing.Anchor; anchor != "" && anchor != puntuale.AnchorStart {
			b.entry(anchor).date = true
		}
		for _, t := range [...]string{step.Text, step.Media, step.MediaName} {
			b.findDates(t)
		}
		for _, t := range texts(step.Official) {
			b.findDates(t)
		}
	}
	return b
}

// findDates notes which fields a text formats as dates.
func (b *builder) findDates(text string) {
	for s := scan(text); s.next(); {
		if s.fault.IsZero() && s.field.format != "" {
			b.entry(s.field.name).date = true
		}
	}
}

// stepFault records what is wrong with a step.
func (b *builder) stepFault(step int, part string, code puntuale.ReasonCode, args ...string) {
	b.stepReason(step, part, puntuale.Because(code, args...))
}

func (b *builder) stepReason(step int, part string, reason puntuale.Reason) {
	b.faults = append(b.faults, reason.At(stepLocation("", step, part), nil))
}
