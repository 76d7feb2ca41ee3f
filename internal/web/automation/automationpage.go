package automation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/payload"
	"puntuale/internal/web/view"
)

// ListPage is the list of automations.
type ListPage struct {
	Rows  []puntuale.Automation
	names names
}

// RulePage is the page of one automation, with its log.
type RulePage struct {
	puntuale.Automation
	Hook         string  // the address of the automation's hook, with the server's address if that is known; "": no hook
	HookLost     bool    // true: this server cannot unseal the address
	Payload      Payload // only with a preset
	names        names
	Firings      []puntuale.Firing
	Cursor, Next string
	Question     *view.Form
}

// Editor is the page with the form of an automation.
type Editor struct {
	Form      *view.Form
	ID        string // "": a new automation
	Kind      puntuale.TriggerKind
	Like      string // the example on which the rule is based; "": none
	Focus     string // the row that gets the focus; "": none
	Rule      puntuale.Automation
	Sequences []view.Option
	Bookings  []view.Option // the sequences for bookings
	Sessions  []view.Option
	Templates []string
	Fields    []string // fields of contacts and of sequences that a person can choose
	Pair      Pair
	Payload   Payload
	Try       Trial
	names     names
}

// Pair contains the names of the default session and its default sequences.
type Pair struct{ Session, Start, Stop string }

// Payload is the last payload that a hook received.
type Payload struct {
	Came    bool
	When    string
	Content string // as JSON
	Members []payload.Member
	Found   []payload.Member // only with a preset: what the payload says about an appointment
	Fault   string           // only with a preset: why it says nothing
}

// Trial is the result of a trial: what an automation would do.
type Trial struct {
	Asked    bool // true: the person requested a trial
	WouldAct bool
	Checks   []Check
	Actions  []TrialAction
	Found    []payload.Member // the fields and values that the mapping found
	Faults   []string
}

// TrialAction is the effect that one action would have. Messages, More, Skipped and Warnings are only set for starts
// and sends.
type TrialAction struct {
	Says     string
	Refused  string   // the reason why the action would not be done; "": it would be done
	Faults   []string // the faults of the action's values
	Messages []puntuale.PlannedMessage
	More     int // the number of messages after those in Messages
	Skipped  []puntuale.SkippedStep
	Warnings []string // problems that the messages would have in the present state
}

// firstMessages is the number of a start's messages that a trial shows.
const firstMessages = 5

// shown returns the actions that a trial shows. If the rule would act, these are all actions. Otherwise they are the
// actions that prevent it.
func (t Trial) shown() []TrialAction {
	if t.WouldAct {
		return t.Actions
	}
	return slices.DeleteFunc(slices.Clone(t.Actions), func(x TrialAction) bool { return x.Refused == "" })
}

// Check is one condition in a trial's result.
type Check struct {
	Held bool
	Says string
}

func (e Editor) action(ctx context.Context) string {
	if e.ID == "" {
		return view.Base(ctx) + "/automations"
	}
	return view.Base(ctx) + "/automations/" + e.ID
}

func (e Editor) rows(name string) []string {
	all := make([]string, rowCount(e.Form, name))
	for i := range all {
		all[i] = rowName(name, i)
	}
	return all
}

// options returns the sequences as options of a choice. The present value is always included, even if its sequence is
// not among the newest.
func (e Editor) options(ctx context.Context, none, value string, more ...view.Option) []view.Option {
	all := []view.Option{{Value: "", Text: none}}
	all = append(append(all, more...), e.Sequences...)
	for _, o := range all {
		if o.Value == value {
			return all
		}
	}
	return append(all, view.Option{Value: value, Text: e.names.sequence(ctx, puntuale.SequenceChoice(value))})
}

// bookings returns the sequences for bookings as options of the choice with this name. none is the key of the text for
// no sequence.
func (e Editor) bookings(ctx context.Context, none, name string) []view.Option {
	e.Sequences = e.Bookings
	return e.options(ctx, view.T(ctx, none), e.Form.Value(name))
}

// statuses returns the statuses that an action can give to a booking.
func (e Editor) statuses(ctx context.Context) []view.Option {
	all := []view.Option{{Text: view.T(ctx, "automation.book_status_kept")}}
	return append(all, words(ctx, "automation.booking.", puntuale.BookingStatuses()...)...)
}

// words returns a sentence that names the default session and its present default sequence. The argument name is the
// name of this sequence.
func (p Pair) words(ctx context.Context, key, name string) string {
	if name == "" {
		return view.T(ctx, "automation."+key+"_default_none", "Session", p.Session)
	}
	return view.T(ctx, "automation."+key+"_default_now", "Session", p.Session, "Sequence", name)
}

// fineConditions reports whether a form uses conditions that are hidden at first.
func (e Editor) fineConditions() bool {
	for _, name := range []string{"conditions.window.weekdays", "conditions.window.from", "conditions.window.to", "conditions.window.holidays"} {
		if e.Form.Value(name) != "" || e.Form.Fault(name) != "" {
			return true
		}
	}
	return false
}

// kinds returns the options for a rule's trigger.
func kinds(ctx context.Context) []view.Option {
	var all []view.Option
	for _, k := range puntuale.TriggerKinds() {
		all = append(all, view.Option{Value: string(k), Text: view.T(ctx, "automation.when."+string(k))})
	}
	return all
}

func words[T ~string](ctx context.Context, key string, all ...T) []view.Option {
	options := make([]view.Option, len(all))
	for i, v := range all {
		options[i] = view.Option{Value: string(v), Text: view.T(ctx, key+strings.ToLower(string(v)))}
	}
	return options
}

// firingWhy returns the reason why a rule did not act, or acted only in part.
func firingWhy(ctx context.Context, f puntuale.Firing) string {
	if f.Reason == "" {
		return ""
	}
	reason := puntuale.Because(f.Reason)
	if f.Detail != "" {
		reason = puntuale.Colon(reason, puntuale.ParseReason(f.Detail))
	}
	return view.Says(ctx, reason)
}

func ruleURL(ctx context.Context, id puntuale.AutomationID, more string) string {
	return fmt.Sprintf("%s/automations/%d%s", view.Base(ctx), id, more)
}

// examples are rules that people can adapt. like is the example's name in a page's address.
var examples = []struct{ like, icon string }{
	{"birthday", "calendar-event"}, {"info", "message-circle"}, {"noshow", "hourglass"}, {"renewal", "repeat"}, {"form", "link"}, {"absent", "calendar-due"}, {"program", "calendar-event"},
}
