package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// RehearsalCall is a request to try an unsaved sequence for one recipient.
type RehearsalCall struct {
	Sequence NewSequence
	Phone    string            // "": an example number
	Fields   map[string]string // the values that a start would contain
}

// DryRun is the result of a rehearsal. A fault in one step does not hide the other steps.
type DryRun struct {
	Plan          plan.Plan
	Fields        []puntuale.Field
	Warnings      []Warning
	Dates         []FieldDate      // the date fields that are anchors of steps, in the order of their first use
	MissingFields []string         // required fields without a value; the plan contains an example for each
	Faults        []puntuale.Fault // the location is in the sequence, such as "body.steps[2].text", or in the values, such as "body.fields.name"
	Now           time.Time
}

// FieldDate is a date field with the time of its value.
type FieldDate struct {
	Name string
	At   time.Time
}

// rehearsedPhone is the recipient if the request names none.
const rehearsedPhone = "+393331234567"

// exampleDays is how many days after today an example date is. An example date replaces a date that the request does
// not contain.
const exampleDays = 7

// Rehearse plans a start of a sequence in the same way as a real start. The sequence need not be stored. Rehearse
// stores and counts nothing. Faults of the sequence and of the values are part of the result. Errors come only from the
// store.
func (c *Client) Rehearse(ctx context.Context, call RehearsalCall) (DryRun, error) {
	zone, err := c.zone()
	if err != nil {
		return DryRun{}, err
	}
	r := DryRun{Now: c.control.clock.Now()}
	checked, err := c.checkSequence(ctx, call.Sequence)
	if err := (*request.Faults)(&r.Faults).Take(err); err != nil {
		return DryRun{}, err
	}
	r.Warnings = checked.Warnings
	expanded, err := c.expand(ctx, puntuale.Sequence{Steps: call.Sequence.Steps[:min(len(call.Sequence.Steps), puntuale.MaxSteps)]})
	if err != nil {
		return DryRun{}, err
	}
	r.Fields = plan.Fields(expanded[0])
	phone := rehearsedPhone
	if puntuale.Trimmed(call.Phone) != "" {
		phone = c.recipient((*request.Faults)(&r.Faults), "body.phone", call.Phone)
	}
	passed := c.examples(&r, call.Fields, zone)
	r.Dates = anchors(expanded[0], passed, zone)
	c.rehearse(&r, expanded[0], plan.Input{Phone: shownPhone(phone), Fields: passed, Location: zone, Closed: c.account.Closed, Now: r.Now, Media: c.control.media})
	return r, nil
}

// examples returns the given values, and an example for each required field without a value.
func (c *Client) examples(r *DryRun, given map[string]string, zone *time.Location) map[string]plan.Value {
	passed := map[string]plan.Value{}
	for _, f := range r.Fields {
		if text := given[f.Name]; puntuale.Trimmed(text) != "" {
			raw, _ := json.Marshal(text) // encoding a string cannot fail
			passed[f.Name] = plan.FromJSON(raw)
			continue
		}
		if !f.Required {
			continue
		}
		r.MissingFields = append(r.MissingFields, f.Name)
		text := Example(f, r.Now.In(zone))
		if text == "" {
			text = "{{" + f.Name + "}}"
		}
		passed[f.Name] = plan.Value{Kind: plan.Text, Text: text}
	}
	return passed
}

// Example returns a valid value for a date or a media address, and "" for other fields. now is in the client's zone.
func Example(f puntuale.Field, now time.Time) string {
	switch f.Kind {
	case puntuale.FieldDate:
		return now.AddDate(0, 0, exampleDays).Format("02/01/2006") + " 10:30"
	case puntuale.FieldMedia:
		return "https://example.com/" + f.Name + ".jpg"
	}
	return ""
}

// anchors returns the times of the date fields that are anchors of steps.
func anchors(s puntuale.Sequence, passed map[string]plan.Value, zone *time.Location) (dates []FieldDate) {
	for _, step := range s.Steps {
		name := step.Timing.Anchor
		if name == "" || name == puntuale.AnchorStart || slices.ContainsFunc(dates, func(d FieldDate) bool { return d.Name == name }) {
			continue
		}
		if m, err := plan.ParseMoment(strings.TrimSpace(passed[name].Text)); err == nil {
			dates = append(dates, FieldDate{name, m.At(9*time.Hour, zone)})
		}
	}
	return dates
}

var faultyStep = regexp.MustCompile(`^(?:body\.)?steps\[(\d+)\](.*)$`)

// rehearse plans the steps. If planning finds a fault in a step, rehearse leaves this step out and plans the rest
// again. The numbers of the steps do not change.
func (c *Client) rehearse(r *DryRun, s puntuale.Sequence, in plan.Input) {
	good := make([]int, 0, len(s.Steps)) // the numbers of the steps without a fault
	bad := map[int]bool{}
	for _, f := range r.Faults {
		if m := faultyStep.FindStringSubmatch(f.Location); m != nil {
			n, _ := strconv.Atoi(m[1]) // the expression matches only digits
			bad[n] = true
		}
	}
	for i := range s.Steps {
		if !bad[i] && !unfilled(s.Steps[i]) {
			good = append(good, i)
		}
	}
	for len(good) > 0 {
		in.Sequence.Steps = make([]puntuale.Step, len(good))
		for i, n := range good {
			in.Sequence.Steps[i] = s.Steps[n]
		}
		p, err := plan.Build(in)
		if err == nil {
			for i := range p.Messages {
				p.Messages[i].Step = good[p.Messages[i].Step]
			}
			for i := range p.Skipped {
				p.Skipped[i].Step = good[p.Skipped[i].Step]
			}
			r.Plan = p
			return
		}
		good = r.leaveOut(err, in.Sequence, good)
	}
}

// leaveOut records the faults of a plan, and returns the numbers of the steps without a fault.
func (r *DryRun) leaveOut(err error, s puntuale.Sequence, good []int) (left []int) {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return nil
	}
	out := map[int]bool{}
	for _, f := range e.Faults {
		if m := faultyStep.FindStringSubmatch(f.Location); m != nil {
			n, _ := strconv.Atoi(m[1]) // the expression matches only digits
			out[n] = true
			f.Location = fmt.Sprintf("body.steps[%d]%s", good[n], m[2])
		} else if name, ok := strings.CutPrefix(f.Location, "body."); ok {
			f.Location = "body.fields." + name
			for i, step := range s.Steps {
				used := plan.Fields(puntuale.Sequence{Steps: []puntuale.Step{step}})
				if slices.ContainsFunc(used, func(g puntuale.Field) bool { return g.Name == name }) {
					out[i] = true
				}
			}
		}
		r.Faults = append(r.Faults, f)
	}
	if len(out) == 0 { // no step causes the faults, so a plan with fewer steps would have the same faults
		return nil
	}
	for i, n := range good {
		if !out[i] {
			left = append(left, n)
		}
	}
	return left
}
