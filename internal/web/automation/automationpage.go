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

// RulePage is one automation with its log.
type RulePage struct {
	puntuale.Automation
	Hook         string // the address of its hook, with the server's own if that is known; "" none
	HookLost     bool   // this server cannot open the address
	names        names
	Firings      []puntuale.Firing
	Cursor, Next string
	Question     *view.Form
}

// Editor is the form of an automation, with everything around it.
type Editor struct {
	Form      *view.Form
	ID        string // "" of a new one
	Kind      puntuale.TriggerKind
	Like      string // the example that it began with; ""
	Focus     string // the row that gets the focus; "" none
	Rule      puntuale.Automation
	Sequences []view.Option
	Sessions  []view.Option
	Templates []string
	Fields    []string // of contacts, and of the sequences: what a person may choose
	Pair      Pair
	Payload   Payload
	Try       Trial
	names     names
}

// Pair is the default sequences of the default session.
type Pair struct{ Session, Start, Stop string }

// Payload is the last payload of a hook.
type Payload struct {
	Came    bool
	When    string
	Members []payload.Member
}

// Trial is what an automation would do.
type Trial struct {
	Asked   bool // somebody asked
	Would   bool
	Checks  []Check
	Actions []TrialAction
	Found   []payload.Member // what the mapping found: fields and values
	Faults  []string
}

// TrialAction is what one action would do. The other members are only for starts and sends.
type TrialAction struct {
	Says     string
	Refused  string   // why it would not happen; "": it would
	Faults   []string // what is wrong with the values
	Messages []puntuale.PlannedMessage
	More     int // messages after those in Messages
	Skipped  []puntuale.SkippedStep
	Warnings []string // what the messages would meet as things are now
}

// firstMessages is how many messages of a start a trial shows.
const firstMessages = 5

// shown are the actions that a trial shows: all of a rule that would act, else those that keep it from acting.
func (t Trial) shown() []TrialAction {
	if t.Would {
		return t.Actions
	}
	return slices.DeleteFunc(slices.Clone(t.Actions), func(x TrialAction) bool { return x.Refused == "" })
}

// Check is one line of a trial.
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

// options are the choices of a sequence. They have the value, even if its sequence is not among the newest.
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

// words say which sequence is the default one of the default session now.
func (p Pair) words(ctx context.Context, key, name string) string {
	if name == "" {
		return view.T(ctx, "automation."+key+"_default_none", "Session", p.Session)
	}
	return view.T(ctx, "automation."+key+"_default_now", "Session", p.Session, "Sequence", name)
}

// fineConditions reports whether a form uses conditions that are folded away.
func (e Editor) fineConditions() bool {
	for _, name := range []string{"conditions.window.weekdays", "conditions.window.from", "conditions.window.to", "conditions.window.holidays"} {
		if e.Form.Value(name) != "" || e.Form.Fault(name) != "" {
			return true
		}
	}
	return false
}

// kinds are the choices of what a rule waits for.
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

// firingWhy says why a rule did not act, or not wholly.
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

// examples are rules that people can change into their own. like is the example's name in a page's address.
var examples = []struct{ like, icon string }{
	{"birthday", "calendar-event"}, {"info", "message-circle"}, {"noshow", "hourglass"}, {"renewal", "repeat"}, {"form", "link"},
}
