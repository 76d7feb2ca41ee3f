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

// Firing is one line of a rule's log: it acted, or it did not although its trigger fits.
type Firing struct {
	ID         int64
	Automation AutomationID
	At         time.Time
	Phone      string // "" of an erased person, or if the trigger has none
	Occurrence string // "" once the person was erased, or contents were blanked
	Acted      bool
	Reason     ReasonCode  // why it did not act, or left something out; "": it did everything
	Detail     string      // the stored form of a [Reason] that says more, such as a missing field; "": none, or contents were blanked
	Depth      int         // the trigger's depth
	Messages   []MessageID // the first message of each start and send
}

// Why a rule did not act, or left something out.
const (
	FiringTags       ReasonCode = "automation.tags"       // a tag is missing
	FiringField      ReasonCode = "automation.field"      // a comparison does not hold
	FiringSession    ReasonCode = "automation.session"    // the trigger came through another session
	FiringWindow     ReasonCode = "automation.window"     // outside the window
	FiringNotIn      ReasonCode = "automation.not_in"     // something of the sequence is pending
	FiringCooldown   ReasonCode = "automation.cooldown"   // it acted for the person recently
	FiringTakeover   ReasonCode = "automation.takeover"   // the client's people answer this person
	FiringDepth      ReasonCode = "automation.depth"      // rules triggered each other MaxAutomationDepth times
	FiringMost       ReasonCode = "automation.most"       // the person got as many starts and sends in 24 hours as the client allows
	FiringRunning    ReasonCode = "automation.running"    // if_running of the sequence kept it from a start
	FiringMissed     ReasonCode = "automation.missed"     // too old: a server was away, a database failed over, or a backup was restored
	FiringPast       ReasonCode = "automation.past"       // every step lies in the past
	FiringRefused    ReasonCode = "automation.refused"    // a start or send could not be planned; Detail says why
	FiringNoDefault  ReasonCode = "automation.no_default" // the session has no default sequence
	FiringGone       ReasonCode = "automation.gone"       // the sequence, session or template is gone
	FiringAccount    ReasonCode = "automation.account"    // the client is suspended or expired
	FiringNoPhone    ReasonCode = "automation.no_phone"   // the hook's payload has no valid phone
	FiringChanged    ReasonCode = "automation.changed"    // the date changed: the messages for the old one are cancelled
	FiringUnkept     ReasonCode = "automation.unkept"     // the client keeps no replies, so nobody knows whether the person answered
	FiringAnswered   ReasonCode = "automation.answered"   // the person answered meanwhile
	FiringNoDate     ReasonCode = "automation.no_date"    // only in a dry run: the contact has no date that comes
	FiringOptOut     ReasonCode = "automation.opt_out"    // only in a dry run: the text is an opt-out
	FiringOtherWords ReasonCode = "automation.words"      // only in a dry run: the text is none of the words
)

// AutomationFacts is what the store knows of a person when a rule decides.
type AutomationFacts struct {
	Contact  *Contact                   // nil: the person is no contact
	Answered time.Time                  // when the client's people wrote last; zero: never
	Assigned bool                       // an agent in Chatwoot has the conversation
	First    ReplyID                    // the first reply ever that is kept; 0: none
	Replied  bool                       // only for a timer: the person wrote since it was set
	Reached  int                        // starts and sends of automations within AutomatedWithin
	Acted    map[AutomationID]time.Time // when each rule acted last for the person, within MaxCooldownHours
	Running  map[SequenceID]bool        // something of the sequence is pending
}

// HookSecret is the secret part of a hook's address. The plain secret is never stored.
type HookSecret struct {
	Hash   KeyHash
	Sealed []byte // for its owner, who may see it again
}

// Hook is what a rule with the trigger hook has besides.
type Hook struct {
	Client     ClientID
	Automation AutomationID
	Active     bool
	Map        map[string]string // as in [Trigger]
	Sealed     []byte
	Payload    []byte    // the last one, at most MaxHookBody; nil: none yet, or removed
	PayloadAt  time.Time // zero: no call yet
	Form       bool      // the payload is a form, not JSON
}

// HookCall is one call of a hook, after its mapping.
type HookCall struct {
	Automation AutomationID
	Key        string            // what makes a repeat a repeat: the caller's idempotency key, or a hash of the body
	Phone      string            // "": the payload has no valid one; then the call is only logged
	Fields     map[string]string // by field; at most MaxHookFields
	Payload    []byte
	Form       bool
	At         time.Time
}

// HookTenant is the owner's side of hooks. Codes: not_found (no rule, or not a hook).
type HookTenant interface {
	Hook(ctx context.Context, id AutomationID) (Hook, error)
	SetHookSecret(ctx context.Context, id AutomationID, s HookSecret) error // the former address is unknown at once
}

// PersonFirings is what automations keep about one person, under each name of the person. An erasure removes it.
type PersonFirings interface {
	// FiringsOf lists the lines of all rules' logs that concern the person, newest first. Codes: invalid (the cursor).
	FiringsOf(ctx context.Context, phone string, p Page) ([]Firing, string, error)
	// PayloadsOf returns the hooks whose last payload names the person: at most MaxAutomations.
	PayloadsOf(ctx context.Context, phone string) ([]Hook, error)
}

// HookStore takes calls of hooks.
type HookStore interface {
	// HookOf finds the hook of an address, also of a rule that is not active. Codes: not_found.
	HookOf(ctx context.Context, hash KeyHash) (Hook, error)
	// CallHook keeps the payload and writes the trigger, in one transaction. It reports whether the call is new: a repeat within HookRepeat
	// has no effect. Codes: not_found.
	CallHook(ctx context.Context, client ClientID, c HookCall) (fresh bool, err error)
}
