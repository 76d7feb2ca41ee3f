package automation

import (
	"context"
	"slices"
	"time"

	"puntuale"
)

// ActionTrial is what one start, send or change of a booking would do.
type ActionTrial struct {
	Action int // index among the rule's actions, from 0
	// Start is the planned run. It has no messages if all steps are in the past. It is zero if the action cannot be planned.
	Start  puntuale.StartRun
	Reason puntuale.ReasonCode // why the action cannot be planned, or would start nothing; "": it would start
	Faults []puntuale.Fault    // what is wrong with the values; only if Reason is [puntuale.FiringRefused]
}

// Try plans the starts, sends and bookings of a rule for a person as a runner does, but stores nothing. After an action that
// cannot be planned, Try continues with the next action. f.Running must say for each sequence that [Reached] returns
// whether it is running. reason says why a stop cannot be executed; "": all stops can.
func Try(ctx context.Context, p Planner, a *puntuale.Automation, o Occasion, f puntuale.AutomationFacts, phone string, now time.Time) (all []ActionTrial, reason puntuale.ReasonCode, err error) {
	w := &clientWork{planner: p, plans: map[string]Plan{}, now: now, dry: true}
	act := &puntuale.AutomationAct{Rule: a.ID, Phone: phone, Depth: o.Depth}
	for i := range a.Actions {
		one := *a
		one.Actions = a.Actions[i : i+1]
		w.last, w.faults, w.change = puntuale.StartRun{}, nil, puntuale.BookingChange{}
		before, booked := len(act.Starts), len(act.Bookings)
		why, _, err := w.actions(ctx, &one, o, f.Contact, act, now)
		if err != nil {
			return nil, "", err
		}
		books := a.Actions[i].Kind == puntuale.ActionBook || a.Actions[i].Kind == puntuale.ActionCancelBooking
		switch {
		case books && why == "":
			all = append(all, w.bookingTrial(i, act.Bookings[booked]))
		case !a.Actions[i].CountsForLimit() && !books:
			if reason == "" {
				reason = why
			}
		case why != "":
			all = append(all, ActionTrial{Action: i, Start: w.last, Reason: why, Faults: w.faults})
		case len(act.Starts) > before: // otherwise an earlier action starts the same sequence
			all = append(all, ActionTrial{Action: i, Start: act.Starts[before]})
		}
	}
	for i := range all {
		if run := &all[i].Start; run.Run.Sequence != 0 && f.Running[run.Run.Sequence] && !stops(act.Stops, run.Run.Sequence) &&
			(run.IfRunning == puntuale.IfRunningSkip || run.IfRunning == puntuale.IfRunningReject) {
			all[i].Reason = puntuale.FiringRunning
		}
	}
	return all, reason, nil
}

// bookingTrial returns what a change of a booking would do.
func (w *clientWork) bookingTrial(action int, put puntuale.PutBooking) ActionTrial {
	c := &w.change
	t := ActionTrial{Action: action, Start: puntuale.StartRun{Run: put.Run, Skipped: c.Skipped}}
	switch {
	case c.Changed:
	case c.Revision == 0: // the put is refused as stale
		t.Reason = puntuale.FiringStale
	case len(c.Kept) > 0:
		t.Reason = puntuale.FiringKept
	default:
		t.Reason = puntuale.FiringUnchanged
	}
	for _, n := range c.New {
		t.Start.Messages = append(t.Start.Messages, n.PlannedMessage)
	}
	return t
}

func stops(all []puntuale.SequenceID, id puntuale.SequenceID) bool {
	return slices.Contains(all, 0) || slices.Contains(all, id)
}

// Reached returns the sequences that a rule would start.
func Reached(ctx context.Context, p Planner, a *puntuale.Automation, o Occasion) (ids []puntuale.SequenceID, err error) {
	for _, x := range a.Actions {
		if x.Kind != puntuale.ActionStart {
			continue
		}
		id := x.Sequence.ID()
		if x.Sequence == puntuale.SequenceDefault {
			if id, _, err = p.DefaultPair(ctx, o.Session); err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
				return nil, err
			}
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Coming returns the next day on which a rule's date comes for a contact, and the value that the rule's sequence gets. day is zero if there is
// no such day.
func Coming(t puntuale.Trigger, c *puntuale.Contact, today puntuale.Date) (day puntuale.Date, value string) {
	if c == nil {
		return day, ""
	}
	field, ok := c.Fields[t.Field]
	if !ok || field.Kind != puntuale.FieldDate {
		return day, ""
	}
	if day = NextDay(t.Repeat, field.Value, today); day.IsZero() {
		return day, ""
	}
	return day, dateValue(field.Value, day)
}
