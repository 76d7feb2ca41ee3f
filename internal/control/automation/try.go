package automation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/keyword"
)

// Trial asks what an automation would do now. It assumes that the trigger's event has just happened.
type Trial struct {
	Phone   string // the person; not used with a hook, because the payload contains the phone
	Text    string // the text of the reply; "": any text that triggers the rule
	Payload []byte // the body of the hook's call: JSON or a form
	Booking string // the reference of the booking; only with the trigger booking
	Faults  []puntuale.Fault
}

// Verdict says whether an automation would act, why, and what it would do.
type Verdict struct {
	WouldAct bool
	Phone    string
	Fields   map[string]string // values that a hook's mapping found in the payload, or those of the booking
	Why      []Condition
	Actions  []puntuale.Action // in the order in which the rule would execute them: stops come first
	Plans    []ActionPlan      // plans of the actions that start or send something, or change a booking
}

// ActionPlan is what a start, a send or a change of a booking would do now.
type ActionPlan struct {
	Action   int               // index in the verdict's Actions
	Sequence puntuale.Sequence // only with id and name; zero for a send, and if a booking's sequence was deleted
	Session  puntuale.SessionID
	Plan     control.Preview
	Reason   puntuale.ReasonCode // why the action would not be executed; "": the action would be executed
	Faults   []puntuale.Fault    // faults of the fields' values
	Warnings []control.Warning   // problems that the messages would have in the present state
}

// Condition is one condition of a decision. If it is false, the rule does not act, and the rule's log contains Reason.
type Condition struct {
	Reason puntuale.ReasonCode
	Value  string // a detail, such as the tag; "": none
	Held   bool
}

// Try returns what a stored automation would do. It stores and sends nothing. Codes: not_found, invalid, unreadable
// (the payload).
func (r *Rules) Try(ctx context.Context, id string, t Trial) (Verdict, error) {
	rule, err := r.Rule(ctx, id)
	if err != nil {
		return Verdict{}, err
	}
	return r.TryDraft(ctx, rule.Automation, t)
}

// TryDraft is like [Rules.Try], but the automation need not be stored.
func (r *Rules) TryDraft(ctx context.Context, a puntuale.Automation, t Trial) (Verdict, error) {
	f := request.Faults(t.Faults)
	o := automation.Occasion{Kind: a.Trigger.Kind, Silent: true}
	o.Session, _ = puntuale.ParseID[puntuale.SessionID](a.Conditions.Session) // assumes that the trigger came through the session of the condition
	var v Verdict
	var err error
	switch a.Trigger.Kind {
	case puntuale.TriggerHook:
		v.Phone, v.Fields, err = r.fromPayload(ctx, &f, a, t)
		o.Fields = v.Fields
	case puntuale.TriggerBooking:
		v.Phone, v.Fields, err = r.fromBooking(ctx, &f, t.Booking)
		o.Fields = v.Fields
	default:
		v.Phone, err = r.client.Recipient(t.Phone)
		if strings.TrimSpace(t.Phone) == "" {
			f.Add("body.phone", puntuale.FaultRequired, nil)
			err = nil
		}
		for _, fault := range request.FaultsOf(err) {
			f.Because("body.phone", fault.Reason(), t.Phone)
		}
	}
	f.Text("body.text", t.Text, puntuale.MaxText)
	if err := f.Err(); err != nil {
		return v, err
	}
	if err != nil {
		return v, err
	}
	return r.decide(ctx, a, t, o, v)
}

// fromPayload returns the phone and the fields that the mapping finds in a trial's payload.
func (r *Rules) fromPayload(ctx context.Context, f *request.Faults, a puntuale.Automation, t Trial) (string, map[string]string, error) {
	if len(t.Payload) > puntuale.MaxHookBody {
		f.Add("body.payload", puntuale.FaultLongerThanBytes, nil, fmt.Sprint(puntuale.MaxHookBody))
		return "", nil, nil
	}
	p, err := readPayload("", t.Payload)
	if puntuale.CodeOf(err) == puntuale.CodeUnreadable {
		for _, fault := range request.FaultsOf(err) {
			f.Because("body.payload", fault.Reason(), nil)
		}
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	phone, fields, faults, err := r.all.understood(ctx, r.client, a.ID, a.Trigger, p)
	for _, fault := range faults {
		f.Because("body.payload", fault.Reason(), nil)
	}
	return phone, fields, err
}

// fromBooking returns the phone and the values of the booking of a trial.
func (r *Rules) fromBooking(ctx context.Context, f *request.Faults, reference string) (string, map[string]string, error) {
	if f.Required("body.reference", reference, puntuale.MaxReference); f.At("body.reference") {
		return "", nil, nil
	}
	state, err := r.store.BookingState(ctx, reference, "")
	if err != nil {
		return "", nil, fmt.Errorf("read a booking: %w", err)
	}
	if state.Revision == 0 || state.Erased {
		f.Because("body.reference", puntuale.Because(puntuale.NoBooking), reference)
		return "", nil, nil
	}
	return state.Phone, state.Texts(), nil
}

// decide completes the verdict v. It decides with the present facts in the store, and plans what the actions would
// start or send.
func (r *Rules) decide(ctx context.Context, a puntuale.Automation, t Trial, o automation.Occasion, v Verdict) (Verdict, error) {
	now := r.all.cfg.Clock.Now()
	settings, err := r.client.Settings(ctx)
	if err != nil {
		return v, err
	}
	zone, err := r.zone()
	if err != nil {
		return v, err
	}
	planner, err := r.all.cfg.Control.PlannerOf(ctx, r.client.ID())
	if puntuale.CodeOf(err) == puntuale.CodeForbidden {
		if planner != nil && !automation.TakesBack(&a, o) {
			planner = nil // the client is expired, so nothing can be planned
		}
	} else if err != nil {
		return v, fmt.Errorf("read a client: %w", err)
	}
	wanted := automation.WantedFacts(&a, o)
	if planner != nil {
		started, err := automation.Reached(ctx, planner, &a, o)
		if err != nil {
			return v, err
		}
		wanted = wanted.Union(puntuale.WantedFacts{Sequences: started})
	}
	facts, err := r.store.AutomationFacts(ctx, v.Phone, wanted, now)
	if err != nil {
		return v, fmt.Errorf("read what an automation decides by: %w", err)
	}
	v.Why = replyHeld(a.Trigger, t.Text, settings)
	if a.Trigger.Kind == puntuale.TriggerDate {
		day, value := automation.Coming(a.Trigger, facts.Contact, puntuale.DateOf(now.In(zone)))
		v.Why = append(v.Why, Condition{puntuale.FiringNoDate, a.Trigger.Field, !day.IsZero()})
		o.Fields = map[string]string{a.Trigger.Field: value}
	}
	for _, h := range automation.Explain(&a, o, facts, automation.Client{Settings: settings, Zone: zone, Closed: r.client.Account().Closed}, now) {
		v.Why = append(v.Why, Condition(h))
	}
	if err := r.defaultsHeld(ctx, a, o.Session, &v); err != nil {
		return v, err
	}
	v.Actions = slices.Clone(a.Actions)
	slices.SortStableFunc(v.Actions, func(x, y puntuale.Action) int { return stopsFirst(x) - stopsFirst(y) })
	a.Actions = v.Actions
	if planner == nil {
		v.Why = append(v.Why, Condition{Reason: puntuale.FiringAccount})
	} else if err := r.planned(ctx, planner, a, o, facts, now, &v); err != nil {
		return v, err
	}
	v.WouldAct = !slices.ContainsFunc(v.Why, func(h Condition) bool { return !h.Held })
	return v, nil
}

// planned adds the plans of the actions to the verdict. If an action prevents the rule from acting, planned adds a
// false condition.
func (r *Rules) planned(ctx context.Context, planner automation.Planner, a puntuale.Automation, o automation.Occasion, f puntuale.AutomationFacts, now time.Time, v *Verdict) error {
	all, reason, err := automation.Try(ctx, planner, &a, o, f, v.Phone, now)
	if err != nil {
		return fmt.Errorf("plan what an automation would do: %w", err)
	}
	v.fails(reason, "")
	// An action that is only left out, such as a start whose sequence already runs, does not prevent the rule from acting
	// if the rule also has another action.
	acts := slices.ContainsFunc(a.Actions, func(x puntuale.Action) bool {
		return x.Kind == puntuale.ActionStop || x.Kind == puntuale.ActionTag || x.Kind == puntuale.ActionBlacklist
	}) ||
		slices.ContainsFunc(all, func(x automation.ActionTrial) bool { return x.Reason == "" })
	for _, x := range all {
		run := x.Start.Run
		p := ActionPlan{
			Action: x.Action, Sequence: puntuale.Sequence{ID: run.Sequence, Name: run.SequenceName}, Session: run.Session,
			Plan: control.Preview{Messages: x.Start.Messages, Skipped: x.Start.Skipped}, Reason: x.Reason, Faults: x.Faults,
		}
		if !acts || !slices.Contains(leftOut, x.Reason) {
			v.fails(x.Reason, run.SequenceName)
		}
		if x.Reason == "" && len(x.Start.Messages) > 0 {
			if p.Warnings, err = r.client.RunWarnings(ctx, x.Start); err != nil {
				return err
			}
		}
		v.Plans = append(v.Plans, p)
	}
	return nil
}

// leftOut contains the reasons why an action is left out although the rule acts.
var leftOut = []puntuale.ReasonCode{puntuale.FiringRunning, puntuale.FiringStale, puntuale.FiringUnchanged, puntuale.FiringKept}

// fails adds a false condition with a reason, unless there is one already.
func (v *Verdict) fails(reason puntuale.ReasonCode, value string) {
	if reason != "" && !slices.ContainsFunc(v.Why, func(h Condition) bool { return h.Reason == reason && !h.Held }) {
		v.Why = append(v.Why, Condition{Reason: reason, Value: value})
	}
}

func stopsFirst(x puntuale.Action) int {
	if x.Kind == puntuale.ActionStop {
		return 0
	}
	return 1
}

// replyHeld returns the conditions that a reply with the text must satisfy to trigger the rule.
func replyHeld(t puntuale.Trigger, text string, s puntuale.ClientSettings) (all []Condition) {
	if text == "" || t.Kind != puntuale.TriggerReply && t.Kind != puntuale.TriggerReplyTo {
		return nil
	}
	words, _, _ := s.Words()
	whole := keyword.Whole(text)
	all = append(all, Condition{puntuale.FiringOptOut, text, !keyword.In(whole, words)})
	if len(t.Words) > 0 {
		all = append(all, Condition{puntuale.FiringOtherWords, text, keyword.In(whole, t.Words)})
	}
	return all
}

// If the actions start or stop the session's default sequences, defaultsHeld adds the condition that the session has
// these sequences. Session 0 means the default session.
func (r *Rules) defaultsHeld(ctx context.Context, a puntuale.Automation, session puntuale.SessionID, v *Verdict) error {
	start := slices.ContainsFunc(a.Actions, func(x puntuale.Action) bool {
		return x.Kind == puntuale.ActionStart && x.Sequence == puntuale.SequenceDefault
	})
	stop := slices.ContainsFunc(a.Actions, func(x puntuale.Action) bool {
		return x.Kind == puntuale.ActionStop && x.Sequence == puntuale.SequenceDefault
	})
	if !start && !stop {
		return nil
	}
	sessions, _, err := r.client.Sessions(ctx, request.Page{Limit: fmt.Sprint(request.MaxPageRows)})
	for _, s := range sessions {
		if session == 0 && s.Default || session == s.ID {
			v.Why = append(v.Why, Condition{puntuale.FiringNoDefault, s.Name, (!start || s.Start != 0) && (!stop || s.Stop != 0)})
		}
	}
	return err
}
