package automation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
)

const (
	datesEvery = 10 * time.Second // the wait between two rounds of dates
	dateWithin = 5 * time.Second  // how long a round works on one rule before the next rule

	// readPerDate: planning one date takes about as long as reading this many contacts.
	readPerDate = 3

	// datesRead: before the runner stores dates, it reads and plans enough dates for at least this many messages. While
	// calls arrive, it stores these dates in several small transactions.
	datesRead = 64
)

func (r *Runner) runDates(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := r.Dates(ctx)
		if err != nil {
			r.failed(ctx, "dates of automations failed", err)
		}
		wait := datesEvery
		if more {
			wait = 0
		}
		if err != nil {
			wait = failWait
		}
		if r.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// Dates works once on each active rule whose trigger is a date. It reports whether due work is left.
func (r *Runner) Dates(ctx context.Context) (more bool, err error) {
	rules, err := r.Store.DateRules(ctx)
	if err != nil {
		return false, fmt.Errorf("list rules for dates: %w", err)
	}
	var first error
	for i := range rules {
		some, err := false, rules[i].Rule.Fault
		if err == nil {
			err = puntuale.Recovered(func() (err error) {
				some, err = r.dates(ctx, rules[i])
				return err
			})
		}
		if err != nil && first == nil {
			first = fmt.Errorf("rule %d: %w", rules[i].Rule.ID, err)
		}
		more = more || some
	}
	return more, first
}

// dates reads contacts that the rule has not read yet, and plans the dates that are near enough.
func (r *Runner) dates(ctx context.Context, d puntuale.DateRule) (more bool, err error) {
	now := r.Clock.Now().Truncate(time.Microsecond)
	end := now.Add(dateWithin)
	clients, err := r.Store.AutomatedClients(ctx, []puntuale.ClientID{d.Client})
	if err != nil || clients[d.Client] == nil {
		return false, err
	}
	w := &clientWork{Runner: r, id: d.Client, now: now, client: clients[d.Client]}
	if err := w.open(ctx); err != nil || w.refusal != "" {
		return false, err // err is nil if the client is suspended or expired: then the dates wait until the client may start runs again
	}
	today := puntuale.DateOf(now.In(w.settings.Zone))
	for more = !d.Scanned; more; {
		begun := r.Clock.Now()
		dates, rest := r.DatesBound()
		if more, err = r.Store.ScanDates(ctx, d, dates*readPerDate, now, func(value string, from time.Time) puntuale.Date {
			return NextDay(d.Rule.Trigger.Repeat, value, puntuale.DateOf(from.In(w.settings.Zone)))
		}); err != nil {
			return false, err
		}
		if more {
			if err := r.rest(ctx, begun, rest); err != nil {
				return false, err
			}
		}
		if more && r.Clock.Now().After(end) {
			return true, nil
		}
	}
	p, err := w.planOf(ctx, &d.Rule.Automation, &d.Rule.Actions[0], Occasion{})
	if err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			return false, nil // the sequence was deleted: nothing is planned until the rule names another sequence
		}
		return false, err
	}
	ahead := lookAhead(d.Rule.Trigger.Field, p.Steps(), w.settings, today)
	for {
		n, stale, err := w.someDates(ctx, d, today.AddDays(ahead), len(p.Steps()), ahead)
		if err != nil || stale || n == 0 {
			return stale, err
		}
		if r.Clock.Now().After(end) {
			return true, nil
		}
	}
}

// rest waits after work that began at the time begun, so that arriving calls get the database. The wait is a multiple of
// the work's duration.
func (r *Runner) rest(ctx context.Context, begun time.Time, multiple int) error {
	if multiple == 0 {
		return nil
	}
	return r.Clock.Sleep(ctx, time.Duration(multiple)*r.Clock.Now().Sub(begun))
}

// someDates works on the next dates, and returns their number. It skips dates that are later than the argument by.
// steps is the number of messages for each date. stale reports whether the rule changed after it was read.
func (w *clientWork) someDates(ctx context.Context, d puntuale.DateRule, by puntuale.Date, steps, ahead int) (n int, stale bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	begun := w.Clock.Now()
	bound, _ := w.DatesBound()
	due, err := w.Store.DueDates(ctx, d, by, perDate(max(bound, datesRead), steps))
	if err != nil || len(due) == 0 {
		return 0, false, err
	}
	w.now = w.Clock.Now().Truncate(time.Microsecond)
	now, former := split(due, d.Rule.Trigger.Field)
	if len(former) > 0 {
		if err := w.followContacts(ctx, former); err != nil || len(now) == 0 {
			return len(due), false, err
		}
	}
	acts, err := w.planDates(ctx, &d.Rule, now, ahead)
	if err != nil {
		return 0, false, err
	}
	stale, err = w.actDates(ctx, acts, steps, begun)
	return len(due), stale, err
}

// perDate returns how many dates fit into a number of messages, but at least one.
func perDate(messages, steps int) int { return max(1, messages/max(1, steps)) }

// split separates the dates that are still correct from the dates that contacts have changed. For a changed date it
// returns a trigger, so that the caller updates the contact's stored dates now. It does so because no runner may have
// taken the stored trigger of the change yet.
func split(due []puntuale.AutomationDate, field string) (now []puntuale.AutomationDate, former []puntuale.TakenTrigger) {
	for i := range due {
		d := &due[i]
		if f := d.Contact.Fields[field]; f.Kind == puntuale.FieldDate && f.Value == d.Value {
			now = append(now, *d)
		} else {
			former = append(former, puntuale.TakenTrigger{Client: d.Client, Fact: puntuale.FactContact, Subject: int64(d.Contact.ID)})
		}
	}
	return now, former
}

// planDates returns the acts for dates. It writes nothing.
func (w *clientWork) planDates(ctx context.Context, rule *puntuale.ActiveAutomation, due []puntuale.AutomationDate, ahead int) ([]*puntuale.AutomationAct, error) {
	phones := make([]string, len(due))
	for i := range due {
		phones[i] = due[i].Contact.Phone
	}
	known, err := w.Store.PersonFacts(ctx, w.id, phones, rule.WantedFacts(), w.now)
	if err != nil {
		return nil, err
	}
	acts := make([]*puntuale.AutomationAct, len(due))
	for i := range due {
		if acts[i], err = w.planDate(ctx, rule, &due[i], ahead, known[due[i].Contact.Phone]); err != nil {
			return nil, err
		}
	}
	return acts, nil
}

// actDates executes the acts of dates, whose planning began at the time begun. While calls arrive, it uses small
// transactions, and rests after each of them. It reports whether the rule changed after it was read.
func (w *clientWork) actDates(ctx context.Context, acts []*puntuale.AutomationAct, steps int, begun time.Time) (stale bool, err error) {
	for len(acts) > 0 {
		bound, rest := w.DatesBound()
		n := min(len(acts), perDate(bound, steps))
		batch := &puntuale.ActBatch{Client: w.id, Now: w.now, Day: puntuale.DateOf(w.now.In(w.settings.Zone)), Acts: acts[:n]}
		if err := w.Store.Act(ctx, batch); err != nil {
			return false, err
		}
		w.wake(batch)
		if !slices.ContainsFunc(batch.Acts, func(act *puntuale.AutomationAct) bool { return act.Outcome != puntuale.ActAgain }) {
			return true, nil
		}
		if err := w.rest(ctx, begun, rest); err != nil {
			return false, err
		}
		acts, begun = acts[n:], w.Clock.Now()
	}
	return false, nil
}

// planDate returns the act for a contact's date. It plans from the time at which the date should have been planned, but from at most
// AutomationCatchUp ago. So if an outage delayed the planning, the steps that became due meanwhile are sent late. If the rule learned the date
// later, or was switched on later, planDate plans from that later time.
func (w *clientWork) planDate(ctx context.Context, rule *puntuale.ActiveAutomation, d *puntuale.AutomationDate, ahead int, f *puntuale.AutomationFacts) (*puntuale.AutomationAct, error) {
	a := &rule.Automation
	d.Next = NextDay(a.Trigger.Repeat, d.Value, d.Day.AddDays(1))
	act := &puntuale.AutomationAct{
		Rule: a.ID, Stamp: rule.Stamp, Phone: d.Contact.Phone, Occurrence: d.Occurrence(),
		Keep: d.Day.At(0, w.settings.Zone).Add(keepFor), Contact: &d.Contact, Date: d, Wanted: a.WantedFacts(),
	}
	o := Occasion{Kind: a.Trigger.Kind, Fields: map[string]string{a.Trigger.Field: dateValue(d.Value, d.Day)}}
	ideal := d.Day.AddDays(-ahead).At(0, w.settings.Zone)
	known := latest(d.Since, rule.Armed)
	asOf := latest(ideal, known, w.now.Add(-puntuale.AutomationCatchUp))
	if asOf.After(w.now) {
		asOf = w.now
	}
	learned := d.Since.Before(w.client.Since) && ideal.Before(w.client.Since)
	switch {
	case !w.client.Since.IsZero() && learned:
		act.Reason = puntuale.FiringMissed
	default:
		act.Reason = Decide(a, o, *f, w.settings, w.now)
	}
	if act.Reason != "" {
		return act, nil
	}
	reason, detail, err := w.actions(ctx, a, o, &d.Contact, act, asOf)
	if err != nil {
		return nil, err
	}
	if inTime := latest(ideal, known); reason == puntuale.FiringPast && asOf.After(inTime) {
		other := *act
		without, _, err := w.actions(ctx, a, o, &d.Contact, &other, inTime)
		if err != nil {
			return nil, err
		}
		if without == "" {
			reason = puntuale.FiringMissed // without the outage, the rule would have started something
		}
	}
	if act.Reason, act.Detail = reason, detail; reason != "" {
		return act, nil
	}
	settings, now, whole := w.settings, w.now, *a
	act.Decide = func(f puntuale.AutomationFacts) puntuale.ReasonCode { return Decide(&whole, o, f, settings, now) }
	return act, nil
}

func latest(all ...time.Time) (t time.Time) {
	for _, x := range all {
		if x.After(t) {
			t = x
		}
	}
	return t
}
