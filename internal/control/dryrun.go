package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// RehearsalCall is a request to try an unsaved sequence for one recipient.
type RehearsalCall struct {
	Sequence NewSequence
	Phone    string            // "": an example number
	Fields   map[string]string // the values that a start would contain

	// In a sequence for bookings, the rehearsal plans a new booking. Change is what then becomes of it: "moved" or a
	// status; "" or another word: nothing.
	Change  string
	MovedTo string // the new main date; "": a day later
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
	Change        *RehearsedChange // what becomes of the rehearsed booking; nil: nothing
}

// RehearsedChange is a change of a rehearsed booking. The plan then contains the messages that left before the change,
// and those that are planned after it.
type RehearsedChange struct {
	Kind      string    // as in [RehearsalCall]
	At        time.Time // when it happens
	From, To  time.Time // the main date before and after it
	Withdrawn []WithdrawnMessage
}

// WithdrawnMessage is a message that a change of its booking takes back.
type WithdrawnMessage struct {
	puntuale.PlannedMessage
	Reason puntuale.ReasonCode
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
	forBookings := call.Sequence.Booking != ""
	asked := puntuale.Sequence{Steps: puntuale.LeadVariants(call.Sequence.Steps[:min(len(call.Sequence.Steps), puntuale.MaxSteps)])}
	if plan.IsFieldName(call.Sequence.Booking) {
		asked.Booking = call.Sequence.Booking
	}
	expanded, err := c.expand(ctx, asked)
	if err != nil {
		return DryRun{}, err
	}
	session, err := c.sessionFor(ctx, &request.Faults{}, call.Sequence.Session)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
		return DryRun{}, err
	}
	if err := c.ruleValues(ctx, session, expanded[0]); err != nil {
		return DryRun{}, err
	}
	r.Fields = plan.Fields(expanded[0])
	phone := rehearsedPhone
	if puntuale.Trimmed(call.Phone) != "" {
		phone = c.recipient((*request.Faults)(&r.Faults), "body.phone", call.Phone)
	}
	passed := c.examples(&r, call.Fields, zone)
	site := ""
	if plan.PrintsPage(expanded[0]) {
		if site, err = c.pageSite(ctx); err != nil {
			return DryRun{}, err
		}
		if site == "" {
			r.Faults, site = append(r.Faults, puntuale.Fault{Location: "body.booking", Code: faultBookingNoAddress}), PagePath
		}
	}
	files, err := c.planFiles(ctx, expanded[0], session)
	if err != nil {
		return DryRun{}, err
	}
	build := func(s puntuale.Sequence) (plan.Plan, error) {
		return plan.Build(plan.Input{Files: files, Sequence: s, Phone: shownPhone(phone), Fields: passed, Location: zone, Closed: c.account.Closed, Now: r.Now, Media: c.control.media})
	}
	if forBookings {
		build = c.bookingRehearsal(&r, call, shownPhone(phone), passed, zone, site)
	}
	if !forBookings || asked.Booking != "" { // without a main date there is no booking
		r.rehearse(expanded[0], build)
	}
	r.Dates = anchors(expanded[0], passed, zone)
	return r, c.asShown(ctx, session, phone, r.Plan.Messages)
}

// ruleValues sets how the values of the steps fit into their approved templates.
func (c *Client) ruleValues(ctx context.Context, session puntuale.Session, s puntuale.Sequence) error {
	approved := false
	for _, step := range puntuale.Texts(s.Steps) {
		approved = approved || step.Official != nil
	}
	if !approved {
		return nil
	}
	_, err := c.purposesOf(ctx, session, s)
	return err
}

// asShown replaces what the session's network does not show: buttons and rows become numbered lines, a link its address.
// On an Official session it tells the ways of the messages.
func (c *Client) asShown(ctx context.Context, s puntuale.Session, phone string, messages []puntuale.PlannedMessage) error {
	if s.ID == 0 || s.Sandbox {
		return nil
	}
	if s.Type == puntuale.Official {
		_, err := c.tellPlanned(ctx, s, phone, pointers(messages), nil)
		return err
	}
	for i := range messages {
		messages[i].Content.Flatten()
		if all := messages[i].Variants; all != nil {
			for n := range *all {
				(*all)[n].Flatten()
			}
		}
	}
	return nil
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

// anchors returns the times of the main date and of the date fields that are anchors of steps.
func anchors(s puntuale.Sequence, passed map[string]plan.Value, zone *time.Location) (dates []FieldDate) {
	names := []string{s.Booking}
	for _, step := range s.Steps {
		names = append(names, step.Timing.Anchor)
	}
	for _, name := range names {
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
func (r *DryRun) rehearse(s puntuale.Sequence, build func(puntuale.Sequence) (plan.Plan, error)) {
	good := make([]int, 0, len(s.Steps)) // the numbers of the steps without a fault
	bad := map[int]bool{}
	for _, f := range r.Faults {
		if m := faultyStep.FindStringSubmatch(f.Location); m != nil {
			n, _ := strconv.Atoi(m[1]) // the expression matches only digits
			bad[n] = true
		}
	}
	for i := range s.Steps {
		if !bad[i] && !unfilled(&s.Steps[i]) {
			good = append(good, i)
		}
	}
	for len(good) > 0 {
		tried := puntuale.Sequence{ID: 1, Booking: s.Booking, Steps: make([]puntuale.Step, len(good))}
		for i, n := range good {
			tried.Steps[i] = s.Steps[n]
			tried.Steps[i].ID = strconv.Itoa(n) // a new step has none yet
		}
		p, err := build(tried)
		if err == nil {
			for i := range p.Messages {
				p.Messages[i].Step = good[p.Messages[i].Step]
			}
			for i := range p.Skipped {
				p.Skipped[i].Step = good[p.Skipped[i].Step]
			}
			if r.Change != nil {
				for i := range r.Change.Withdrawn {
					r.Change.Withdrawn[i].Step = good[r.Change.Withdrawn[i].Step]
				}
			}
			r.Plan = p
			return
		}
		good = r.leaveOut(err, tried, good)
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

// bookingRehearsal returns a function that plans a new booking and the change that the call names. The function does
// the same as calls that make and change a booking, except that it stores nothing.
func (c *Client) bookingRehearsal(r *DryRun, call RehearsalCall, phone string, passed map[string]plan.Value, zone *time.Location, site string) func(puntuale.Sequence) (plan.Plan, error) {
	fields := map[string]json.RawMessage{}
	for name, v := range passed {
		fields[name], _ = json.Marshal(v.Text) // encoding a string cannot fail
	}
	return func(s puntuale.Sequence) (plan.Plan, error) {
		p := &bookingPut{
			client: c, zone: zone, site: site, call: BookingCall{Fields: fields}, info: startInfo{sequence: s, purposes: make([]puntuale.Purpose, len(s.Steps))},
			put: booking.Put{Sequence: s.ID, Phone: phone, Door: puntuale.DoorPage, Forced: true, Now: r.Now, MovedSteps: movedSteps(s), Page: "…"},
		}
		made, err := p.decide(puntuale.BookingState{})
		if err != nil {
			return plan.Plan{}, err
		}
		first := plan.Plan{Skipped: made.Skipped}
		for _, n := range made.New {
			first.Messages = append(first.Messages, n.PlannedMessage)
		}
		change := call.change(made.Date, r.Now)
		if change == nil {
			return first, nil
		}
		then, err := p.rehearseChange(change, made, call.MovedTo)
		if err == nil {
			r.Change = change
		}
		return then, err
	}
}

// rehearsedMove is the change of a rehearsed booking that gives it another main date.
const rehearsedMove = "moved"

// change returns the change that the call names, and when it happens; nil: it names none. now is when the booking is made.
func (call *RehearsalCall) change(date, now time.Time) *RehearsedChange {
	r := &RehearsedChange{Kind: call.Change, At: now.Add(time.Hour), From: date, To: date}
	if date.After(now) && date.Before(now.Add(2*time.Hour)) {
		r.At = now.Add(date.Sub(now) / 2)
	}
	switch status, err := puntuale.ParseBookingStatus(call.Change); {
	case call.Change == rehearsedMove:
		r.To = date.AddDate(0, 0, 1)
	case err != nil || status == puntuale.BookingOpen:
		return nil
	case status == puntuale.BookingArrived, status == puntuale.BookingNoShow:
		if r.At = now; date.After(now) {
			r.At = date
		}
		r.At = r.At.Add(10 * time.Minute)
	}
	return r
}

// rehearseChange plans the change of a booking that was just made. Messages that are due before the change have left.
func (p *bookingPut) rehearseChange(change *RehearsedChange, made puntuale.BookingChange, movedTo string) (then plan.Plan, err error) {
	p.stored = puntuale.BookingState{Booking: made.Booking}
	p.stored.ID = 1
	for i, n := range made.New {
		step := puntuale.BookingStep{
			Key: n.Key, Phone: made.Phone, Message: puntuale.MessageID(i + 1), Timing: n.Timing, Digest: n.Digest, There: true, State: puntuale.Pending,
			Desired: n.Desired, Due: n.Due, Next: n.Due, ValidUntil: n.ValidUntil,
		}
		if !n.Due.After(change.At) {
			step.State, step.Left = puntuale.Completed, n.Due
			then.Messages = append(then.Messages, n.PlannedMessage)
		}
		p.stored.Steps = append(p.stored.Steps, step)
	}
	p.put.Now = change.At
	if change.Kind == rehearsedMove {
		text, _ := json.Marshal(cmp.Or(movedTo, change.To.In(p.zone).Format("02/01/2006 15:04"))) // encoding a string cannot fail
		p.call.Fields = maps.Clone(p.call.Fields)
		p.call.Fields[p.info.sequence.Booking] = text
	} else if status, err := puntuale.ParseBookingStatus(change.Kind); err == nil {
		p.put.Status = &status
	}
	next, err := p.decide(p.stored)
	if err != nil {
		return plan.Plan{}, err
	}
	change.To, then.Skipped = next.Date, next.Skipped
	for _, i := range next.BookingDifference.Pending {
		then.Messages = append(then.Messages, made.New[i].PlannedMessage)
	}
	for _, n := range next.New {
		then.Messages = append(then.Messages, n.PlannedMessage)
	}
	for _, w := range next.Withdraw {
		change.Withdrawn = append(change.Withdrawn, WithdrawnMessage{made.New[w.Step].PlannedMessage, w.Reason})
	}
	return then, nil
}
