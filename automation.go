package puntuale

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// An automation is a rule of a client: one trigger, conditions joined by "and", and actions in order. Its story is this:
//
//	a fact (a reply, an outcome, a call of a hook, a date) ─▶ a [Firing] that acted, or that did not act for a [Reason]
//
// The transaction of a fact also writes a trigger row, but only for a client with an active rule that wants such facts. A
// runner takes the row, decides, and acts in one transaction. The occurrence commits there: a reply's network id, a run, a date, or the key of a hook's call. So the rule acts once for it and a
// person. The origin of its messages is
// AUTOMATION. See docs/decisions/0041-automations.md.

// AutomationID names an automation.
type AutomationID int64

func (id AutomationID) String() string { return strconv.FormatInt(int64(id), 10) }

// Limits of automations.
const (
	MaxAutomations       = 100 // the most automations of one client
	MaxActions           = 10  // the most actions of one rule
	MaxTriggerWords      = 50
	MaxTriggerWord       = 100 // characters
	MaxConditionFields   = 20
	MaxConditionTags     = 20
	MaxHookFields        = 50
	MaxHookBody          = 64 << 10
	MaxHookRate          = 10  // calls of one hook a second
	MaxNoReplyHours      = 720 // 30 days
	MaxCooldownHours     = 720 // as long as the log is kept
	MaxAutomationDepth   = 3   // what an automation starts has the depth of its trigger, and one more. At this depth nothing acts
	DefaultAutomatedMost = 5   // starts and sends of automations that a person gets in 24 hours
	MaxAutomatedMost     = 100
)

const (
	// KeepFirings is how long the log keeps firings.
	KeepFirings = 30 * 24 * time.Hour
	// HookRepeat is how long a repeat of a hook's call is recognized.
	HookRepeat = 24 * time.Hour
	// AutomationCatchUp is how late a date may be planned after an outage. Later ones are logged as missed.
	AutomationCatchUp = 24 * time.Hour
	// AutomatedWithin is the time in which the starts and sends of a person are counted.
	AutomatedWithin = 24 * time.Hour
	// DepthWithin is how long after an automatic message a reply has its depth. Only programs answer each other so often and so quickly
	// that the depth counts. A person who writes again tomorrow begins anew.
	DepthWithin = time.Hour
)

// Automation is a rule.
type Automation struct {
	ID         AutomationID
	Name       string // also the nome_invio of what it starts
	Active     bool
	Trigger    Trigger
	Conditions Conditions
	Actions    []Action
	Created    time.Time
	Updated    time.Time

	Fired     int64     // how often it acted
	LastFired time.Time // zero: never
}

// Version is the version of what a rule's editor shows.
func (a Automation) Version() Version {
	return versionOf(a.Name, a.Active, a.Trigger, a.Conditions, a.Actions, moment(a.Updated))
}

// TriggerKind is what a rule waits for.
type TriggerKind string

// Kinds of triggers. Stores keep numbers for them.
const (
	TriggerReply   TriggerKind = "reply"    // a person wrote
	TriggerReplyTo TriggerKind = "reply_to" // a person answered a sequence
	TriggerNoReply TriggerKind = "no_reply" // a person did not answer a sequence in time
	TriggerDate    TriggerKind = "date"     // the date of a contact's field comes
	TriggerHook    TriggerKind = "hook"     // a program called the rule's secret address
	TriggerOutcome TriggerKind = "outcome"  // a message of a sequence was sent, failed or was read
)

// TriggerKinds are all kinds, in the order of pages.
func TriggerKinds() []TriggerKind {
	return []TriggerKind{TriggerReply, TriggerReplyTo, TriggerNoReply, TriggerDate, TriggerHook, TriggerOutcome}
}

// Personal reports whether the trigger belongs to a conversation. Such rules leave a person alone after a take-over.
func (k TriggerKind) Personal() bool { return k != TriggerDate && k != TriggerHook }

// Repeat says how often a date comes.
type Repeat string

const (
	RepeatYearly  Repeat = "yearly"  // 29 February counts as 28 February in common years
	RepeatMonthly Repeat = "monthly" // a day that the month lacks counts as its last day
	RepeatOnce    Repeat = "once"
)

// OutcomeStatus is an outcome that a rule waits for.
type OutcomeStatus string

const (
	OutcomeCompleted OutcomeStatus = "COMPLETED"
	OutcomeFailed    OutcomeStatus = "FAILED"
	OutcomeRead      OutcomeStatus = "READ"
)

// Trigger is what a rule waits for. Members that its kind does not use are empty. The JSON form is both the wire's and what
// stores keep.
type Trigger struct {
	Kind     TriggerKind       `json:"kind"`
	Words    []string          `json:"words,omitempty"`    // reply: the whole message is one of them, compared as opt-out words are; none: any message
	First    bool              `json:"first,omitempty"`    // reply: only the first one ever
	Sequence SequenceChoice    `json:"sequence,omitempty"` // reply_to, no_reply, outcome: an id
	Hours    int               `json:"hours,omitempty"`    // no_reply: 1 to MaxNoReplyHours after the run's last message was COMPLETED
	Field    string            `json:"field,omitempty"`    // date: a contact's date field
	Repeat   Repeat            `json:"repeat,omitempty"`   // date
	Map      map[string]string `json:"map,omitempty"`      // hook: the path of each field in the payload, such as "customer.phone" (package payload); "phone" is required
	Is       OutcomeStatus     `json:"is,omitempty"`       // outcome
}

// A [SequenceChoice] is the id of a sequence, or one of these words.
const (
	SequenceDefault SequenceChoice = "default" // the sequence in the session's default pair
	SequenceAll     SequenceChoice = "all"     // all sequences; allowed only for the action stop
)

// SequenceChoice is the id of a sequence as the wire shows it, or a word.
type SequenceChoice string

// ID returns the sequence's id; 0 if the choice is a word, or no id.
func (c SequenceChoice) ID() SequenceID {
	id, err := ParseID[SequenceID](string(c))
	if err != nil {
		return 0
	}
	return id
}

// UnmarshalJSON reads an id as a string or as a number.
func (c *SequenceChoice) UnmarshalJSON(text []byte) error {
	var number json.Number
	if len(text) > 0 && text[0] != '"' && json.Unmarshal(text, &number) == nil {
		*c = SequenceChoice(number)
		return nil
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return fmt.Errorf("a sequence is a string or a number: %w", err)
	}
	*c = SequenceChoice(word)
	return nil
}

// Conditions must all hold. The JSON form is both the wire's and what stores keep.
type Conditions struct {
	Tags          []string         `json:"tags,omitempty"` // the contact has all of them
	Fields        []FieldCondition `json:"fields,omitempty"`
	Session       string           `json:"id_sessione,omitempty"` // the trigger came through this session; not with date and hook
	Window        *Window          `json:"window,omitempty"`      // its hours are in the client's zone
	NotIn         SequenceChoice   `json:"not_in,omitempty"`      // nothing of the sequence is pending for the person
	CooldownHours int              `json:"cooldown_hours,omitempty"`
}

// FieldOperator compares a field.
type FieldOperator string

// Comparisons of a field. A field that is missing is empty: only not_equal and empty hold for it.
const (
	FieldEqual    FieldOperator = "equal" // texts are compared without case and accents
	FieldNotEqual FieldOperator = "not_equal"
	FieldLess     FieldOperator = "less" // compares numbers and dates
	FieldMore     FieldOperator = "more"
	FieldContains FieldOperator = "contains" // of texts
	FieldFilled   FieldOperator = "filled"   // goes without a value
	FieldEmpty    FieldOperator = "empty"    // likewise
)

// FieldOps returns all comparisons.
func FieldOps() []FieldOperator {
	return []FieldOperator{FieldEqual, FieldNotEqual, FieldLess, FieldMore, FieldContains, FieldFilled, FieldEmpty}
}

// FieldCondition compares a field of the contact with a value. If a hook's call has a field of this name, its value counts, and not the contact's.
type FieldCondition struct {
	Name  string        `json:"name"`
	Op    FieldOperator `json:"op"`
	Value string        `json:"value,omitempty"`
}

// ActionKind is what an action does.
type ActionKind string

const (
	ActionStart     ActionKind = "start"
	ActionStop      ActionKind = "stop"
	ActionSend      ActionKind = "send"
	ActionTag       ActionKind = "tag"
	ActionBlacklist ActionKind = "blacklist"
)

// ActionKinds are all kinds, in the order of pages.
func ActionKinds() []ActionKind {
	return []ActionKind{ActionStart, ActionStop, ActionSend, ActionTag, ActionBlacklist}
}

// Action is one thing that a rule does. Members that its kind does not use are empty. Stops come before starts, whatever the order. The
// JSON form is both the wire's and what stores keep.
type Action struct {
	Kind     ActionKind     `json:"kind"`
	Sequence SequenceChoice `json:"sequence,omitempty"` // start: an id or "default"; stop: also "all"

	// send: one message, as a step has it. It leaves at once, through the session of the trigger, else the default one.
	Text      string   `json:"text,omitempty"`
	Media     string   `json:"media,omitempty"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	Longitude *float64 `json:"longitude,omitempty"`
	Template  string   `json:"template,omitempty"`
	Purpose   string   `json:"purpose,omitempty"` // service unless set

	Add    []string `json:"add,omitempty"` // tag; a person who is no contact becomes one
	Remove []string `json:"remove,omitempty"`
}

// Step is the one step of a send.
func (a Action) Step() Step {
	return Step{
		Text: a.Text, Media: a.Media, MediaName: a.MediaName, Latitude: a.Latitude, Longitude: a.Longitude, Template: a.Template,
		Timing: Timing{Anchor: AnchorStart},
	}
}

// Reaches reports whether the action starts or sends something, and so counts among those that a person may get in a day.
func (a Action) Reaches() bool { return a.Kind == ActionStart || a.Kind == ActionSend }

// AutomationStore keeps the rules of a client. Codes: not_found.
type AutomationStore interface {
	// CreateAutomation takes a rule that [Automation.Validate] accepts; o may be nil, and its Answer gets the AutomationID. A rule that is
	// active wants facts from its commit on. secret is nil unless the trigger is a hook. Codes: quota_reached; invalid (a sequence, session or template that
	// it names, at its place).
	CreateAutomation(ctx context.Context, a Automation, secret *HookSecret, o *Idempotency) (AutomationID, error)
	// UpdateAutomation replaces a rule, except its kind of trigger. What it planned for dates stays. Codes: invalid, as above, and at
	// body.trigger.kind; precondition_failed.
	UpdateAutomation(ctx context.Context, a Automation, known ...Version) error
	Automation(ctx context.Context, id AutomationID) (Automation, error)
	Automations(ctx context.Context) ([]Automation, error) // by id; at most MaxAutomations
	// DeleteAutomation removes a rule and its log. What it started goes on.
	DeleteAutomation(ctx context.Context, id AutomationID) error
	// Firings lists the log of a rule, newest first. Codes: invalid (the cursor).
	Firings(ctx context.Context, id AutomationID, p Page) ([]Firing, string, error)
	// AutomationFacts returns what a decision about a person needs.
	AutomationFacts(ctx context.Context, phone string, wanted WantedFacts, now time.Time) (AutomationFacts, error)
}
