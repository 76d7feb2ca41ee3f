package puntuale

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// An automation is a rule of a client: one trigger, conditions joined by "and", and actions in order. This is the way
// from a fact to a line in the rule's log:
//
//	a fact (a reply, an outcome, a call of a hook, a date) ─▶ a [Firing] that acted, or that did not act for a [Reason]
//
// The transaction that stores a fact also writes a trigger row, if the client has an active rule that waits for such
// facts. A runner takes the row, decides, and acts, all in one transaction. This transaction also stores the
// occurrence: a reply's network id, a run, a date, or the key of a hook's call. Therefore a rule acts only once for one
// occurrence and one person. The messages of a rule have the origin AUTOMATION. See docs/decisions/replies.md.

// AutomationID names an automation.
type AutomationID int64

func (id AutomationID) String() string { return strconv.FormatInt(int64(id), 10) }

// Limits of automations.
const (
	MaxAutomations     = 100 // automations of one client
	MaxActions         = 10  // actions of one rule
	MaxTriggerWords    = 50
	MaxTriggerWord     = 100 // characters of one word
	MaxConditionFields = 20
	MaxConditionTags   = 20
	MaxHookFields      = 50
	MaxHookBody        = 64 << 10
	MaxHookRate        = 10  // calls of one hook a second
	MaxNoReplyHours    = 720 // 30 days
	MaxCooldownHours   = 720 // 30 days; firings are kept for the same time
	// MaxAutomationDepth is the depth at which no rule acts any more. If a rule starts a run, the run's depth is the
	// depth of the rule's trigger plus 1.
	MaxAutomationDepth   = 3
	DefaultAutomatedMost = 5 // starts and sends of automations that one person may get in 24 hours
	MaxAutomatedMost     = 100
)

const (
	// KeepFirings is how long the log stores firings.
	KeepFirings = 30 * 24 * time.Hour
	// HookRepeat is how long the server recognizes a repeat of a hook's call.
	HookRepeat = 24 * time.Hour
	// AutomationCatchUp: after an outage, a rule whose trigger is a date still plans the steps that are at most this
	// late. If all steps are later than that, the rule does nothing, and the log says missed.
	AutomationCatchUp = 24 * time.Hour
	// AutomatedWithin is the period in which the starts and sends for one person are counted.
	AutomatedWithin = 24 * time.Hour
	// DepthWithin: a reply within this time after an automatic message gets the depth of this message. A program
	// usually answers within this time, so a loop of two programs ends at MaxAutomationDepth. A later reply has depth
	// 0.
	DepthWithin = time.Hour
)

// Automation is a rule.
type Automation struct {
	ID         AutomationID
	Name       string // also the name (nome_invio) of the runs that the rule starts
	Active     bool
	Trigger    Trigger
	Conditions Conditions
	Actions    []Action
	Created    time.Time
	Updated    time.Time

	Fired     int64     // how often the rule acted
	LastFired time.Time // when the rule last acted; zero: never
}

// Version returns the version of the values in a rule's editor.
func (a Automation) Version() Version {
	return versionOf(a.Name, a.Active, a.Trigger, a.Conditions, a.Actions, moment(a.Updated))
}

// TriggerKind says which event a rule waits for.
type TriggerKind string

// Kinds of triggers. The database stores each kind as a number.
const (
	TriggerReply   TriggerKind = "reply"    // a person wrote
	TriggerReplyTo TriggerKind = "reply_to" // a person answered a sequence
	TriggerNoReply TriggerKind = "no_reply" // a person did not answer a sequence in time
	TriggerDate    TriggerKind = "date"     // the date in a contact's field has come
	TriggerHook    TriggerKind = "hook"     // a program called the rule's secret address
	TriggerOutcome TriggerKind = "outcome"  // a message of a sequence was sent, failed or was read
	TriggerBooking TriggerKind = "booking"  // a booking was made or changed
)

// TriggerKinds returns all kinds, in the order in which pages show them.
func TriggerKinds() []TriggerKind {
	return []TriggerKind{TriggerReply, TriggerReplyTo, TriggerNoReply, TriggerDate, TriggerHook, TriggerOutcome, TriggerBooking}
}

// Personal reports whether the trigger belongs to a conversation. Rules with such a trigger do not act for a person
// during a take-over.
func (k TriggerKind) Personal() bool {
	return k != TriggerDate && k != TriggerHook && k != TriggerBooking
}

// Repeat says how often a date recurs.
type Repeat string

const (
	RepeatYearly  Repeat = "yearly"  // 29 February counts as 28 February in years without a 29 February
	RepeatMonthly Repeat = "monthly" // if a month lacks the day, the month's last day counts
	RepeatOnce    Repeat = "once"
)

// OutcomeStatus is what a rule waits for: what became of a message, or of a booking.
type OutcomeStatus string

const (
	OutcomeCompleted OutcomeStatus = "COMPLETED"
	OutcomeFailed    OutcomeStatus = "FAILED"
	OutcomeRead      OutcomeStatus = "READ"
	OutcomeClicked   OutcomeStatus = "CLICKED" // a person followed a tracked link of it

	BookingIsCreated   OutcomeStatus = "created" // also when it is open again after a cancellation
	BookingIsMoved     OutcomeStatus = "moved"
	BookingIsConfirmed OutcomeStatus = "confirmed"
	BookingIsCancelled OutcomeStatus = "cancelled"
	BookingIsArrived   OutcomeStatus = "arrived"
	BookingIsNoShow    OutcomeStatus = "no_show"
	BookingIsAnswered  OutcomeStatus = "answered"
)

// BookingOutcomes returns what may become of a booking.
func BookingOutcomes() []OutcomeStatus {
	return []OutcomeStatus{BookingIsCreated, BookingIsMoved, BookingIsConfirmed, BookingIsCancelled, BookingIsArrived, BookingIsNoShow, BookingIsAnswered}
}

// BookingEvent returns the event that tells of this outcome of a booking, or 0 if it is none.
func (s OutcomeStatus) BookingEvent() EventType {
	for t := EventBookingCreated; t <= EventBookingAnswered; t++ {
		if t.OfBooking() && t.String() == "booking."+string(s) {
			return t
		}
	}
	return 0
}

// Trigger says which event a rule waits for. Members that its kind does not use are empty. The API and the database use
// the same JSON form.
type Trigger struct {
	Kind     TriggerKind       `json:"kind"`
	Words    []string          `json:"words,omitempty"`    // reply: the whole message must be one of these words, compared like opt-out words; empty: any message
	First    bool              `json:"first,omitempty"`    // reply: only the person's first reply in the store
	Sequence SequenceChoice    `json:"sequence,omitempty"` // reply_to, no_reply, outcome: an id; booking: an id, or "" for every sequence
	Hours    int               `json:"hours,omitempty"`    // no_reply: hours without an answer after the run's last message was COMPLETED, 1 to MaxNoReplyHours
	Field    string            `json:"field,omitempty"`    // date: name of a contact's date field
	Repeat   Repeat            `json:"repeat,omitempty"`   // date: how often the date recurs
	Map      map[string]string `json:"map,omitempty"`      // hook: the path of each field in the payload, such as "customer.phone" (package payload); "phone" is required
	Preset   HookPreset        `json:"preset,omitempty"`   // hook: the program that calls, instead of Map
	Is       OutcomeStatus     `json:"is,omitempty"`       // outcome, booking: the result for which the rule waits
}

// HookPreset names a program for appointments whose calls the server understands without a map (package preset). One
// action book then makes, moves and cancels the program's appointments.
type HookPreset string

const (
	PresetCalCom           HookPreset = "calcom"
	PresetCalendly         HookPreset = "calendly"
	PresetEasyAppointments HookPreset = "easyappointments"
	PresetWooCommerce      HookPreset = "woocommerce_bookings"
)

// HookPresets returns all presets, in the order in which pages show them.
func HookPresets() []HookPreset {
	return []HookPreset{PresetCalCom, PresetCalendly, PresetEasyAppointments, PresetWooCommerce}
}

// Values of a [SequenceChoice] that are not ids.
const (
	SequenceDefault SequenceChoice = "default" // the sequence in the session's default pair
	SequenceAll     SequenceChoice = "all"     // all sequences; allowed only for the action stop
)

// SequenceChoice is SequenceDefault, SequenceAll, or the id of a sequence as a decimal number.
type SequenceChoice string

// ID returns the sequence's id, or 0 if the choice is no id.
func (c SequenceChoice) ID() SequenceID {
	id, err := ParseID[SequenceID](string(c))
	if err != nil {
		return 0
	}
	return id
}

// UnmarshalJSON accepts an id as a string or as a number.
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

// Conditions must all be true. The API and the database use the same JSON form.
type Conditions struct {
	Tags          []string         `json:"tags,omitempty"` // the contact must have all these tags
	Fields        []FieldCondition `json:"fields,omitempty"`
	Session       string           `json:"id_sessione,omitempty"` // the trigger must have come through this session; not used with date and hook
	Window        *Window          `json:"window,omitempty"`      // the hours in which the rule acts, in the client's zone
	NotIn         SequenceChoice   `json:"not_in,omitempty"`      // no message of the sequence may be pending for the person
	CooldownHours int              `json:"cooldown_hours,omitempty"`
	BookingStatus []string         `json:"booking_status,omitempty"` // the trigger's booking must have one of these statuses
}

// FieldOperator is a comparison of a field with a value.
type FieldOperator string

// Comparisons of a field. A missing field counts as empty: only not_equal and empty are true for it.
const (
	FieldEqual    FieldOperator = "equal" // case and accents of texts do not matter
	FieldNotEqual FieldOperator = "not_equal"
	FieldLess     FieldOperator = "less" // compares numbers and dates
	FieldMore     FieldOperator = "more"
	FieldContains FieldOperator = "contains" // compares texts
	FieldFilled   FieldOperator = "filled"   // uses no value
	FieldEmpty    FieldOperator = "empty"    // uses no value
)

// FieldOps returns all comparisons.
func FieldOps() []FieldOperator {
	return []FieldOperator{FieldEqual, FieldNotEqual, FieldLess, FieldMore, FieldContains, FieldFilled, FieldEmpty}
}

// FieldCondition compares a field of the contact with a value. If a hook's call has a field with this name, the call's
// value is compared instead of the contact's.
type FieldCondition struct {
	Name  string        `json:"name"`
	Op    FieldOperator `json:"op"`
	Value string        `json:"value,omitempty"`
}

// ActionKind says what an action does.
type ActionKind string

const (
	ActionStart         ActionKind = "start"
	ActionStop          ActionKind = "stop"
	ActionSend          ActionKind = "send"
	ActionTag           ActionKind = "tag"
	ActionBlacklist     ActionKind = "blacklist"
	ActionBook          ActionKind = "book"           // makes or changes a booking
	ActionCancelBooking ActionKind = "cancel_booking" // cancels a booking
)

// ActionKinds returns all kinds, in the order in which pages show them.
func ActionKinds() []ActionKind {
	return []ActionKind{ActionStart, ActionStop, ActionSend, ActionBook, ActionCancelBooking, ActionTag, ActionBlacklist}
}

// Action is one thing that a rule does. Members that its kind does not use are empty. A rule executes its stop actions
// before its start actions, even if they are listed in another order. The API and the database use the same JSON form.
type Action struct {
	Kind     ActionKind     `json:"kind"`
	Sequence SequenceChoice `json:"sequence,omitempty"` // start: an id or "default"; stop: also "all"; book: an id

	// send: one message, with the same fields as a step. It leaves immediately, through the session of the trigger. If
	// the trigger has no session, the client's default session sends it.
	Text      string   `json:"text,omitempty"`
	Media     string   `json:"media,omitempty"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	Longitude *float64 `json:"longitude,omitempty"`
	Template  string   `json:"template,omitempty"`
	Purpose   string   `json:"purpose,omitempty"` // "": service

	Add    []string `json:"add,omitempty"` // tag: the tags to add; if the person is no contact, the rule makes a contact
	Remove []string `json:"remove,omitempty"`

	// book, cancel_booking: the reference of the booking. It may have placeholders for fields. "": the trigger's booking,
	// as [ReferenceField] names it. If a book action finds no reference, it makes a new booking each time.
	Reference string `json:"reference,omitempty"`
	Status    string `json:"status,omitempty"` // book: the status that the booking gets; "": it keeps its own, a new one is open
	Silent    bool   `json:"silent,omitempty"` // cancel_booking: no message tells of it
}

// Names of a trigger's values that actions about bookings read. A hook maps them like fields. The trigger booking knows
// the reference.
const (
	ReferenceField = "reference"
	AsOfField      = "as_of" // how new the values are on the side of the hook's program; see [AsOf]
)

// Names of the values that only a preset gives. They are fields for texts and conditions, too.
const (
	FormerField = "former_reference" // the reference that the appointment had before it was moved
	StatusField = "status"
	MovedField  = "moved" // not "": the appointment goes on under another reference
	DateField   = "date"
	ZoneField   = "timezone"
	// SkippedField has the reason why a call says nothing about an appointment. No field of a map can have this name.
	SkippedField = "?"
)

// Step returns the message of a send action as a step.
func (a Action) Step() Step {
	return Step{
		Text: a.Text, Media: a.Media, MediaName: a.MediaName, Latitude: a.Latitude, Longitude: a.Longitude, Template: a.Template,
		Timing: Timing{Anchor: AnchorStart},
	}
}

// CountsForLimit reports whether the action starts or sends something. Such actions count for the limit of what a
// person may get in 24 hours.
func (a Action) CountsForLimit() bool { return a.Kind == ActionStart || a.Kind == ActionSend }

// Books reports whether the rule changes bookings, or reads the status of one.
func (a *Automation) Books() bool {
	return len(a.Conditions.BookingStatus) > 0 || slices.ContainsFunc(a.Actions, func(x Action) bool { return x.Kind == ActionBook || x.Kind == ActionCancelBooking })
}

// Firing is one line of a rule's log. The rule acted, or it did not act although the trigger matched.
type Firing struct {
	ID         int64
	Automation AutomationID
	At         time.Time
	Phone      string // "" if the person was erased, or the trigger has no person
	Occurrence string // "" after the person was erased or contents were blanked
	Acted      bool
	Reason     ReasonCode  // why the rule did not act, or why it left out an action; "": the rule executed all actions
	Detail     string      // the stored form of a [Reason] with details, such as a missing field; "": no details, or contents were blanked
	Depth      int         // the trigger's depth
	Messages   []MessageID // the first message of each start and send
}

// Reasons why a rule did not act, or left an action out.
const (
	FiringTags       ReasonCode = "automation.tags"        // the contact lacks a tag
	FiringField      ReasonCode = "automation.field"       // a comparison of a field is not true
	FiringSession    ReasonCode = "automation.session"     // the trigger came through another session
	FiringWindow     ReasonCode = "automation.window"      // the time is outside the window
	FiringNotIn      ReasonCode = "automation.not_in"      // messages of the sequence are pending
	FiringCooldown   ReasonCode = "automation.cooldown"    // the rule acted for the person recently
	FiringTakeover   ReasonCode = "automation.takeover"    // the client's people answer this person
	FiringDepth      ReasonCode = "automation.depth"       // rules triggered each other, up to depth MaxAutomationDepth
	FiringMost       ReasonCode = "automation.most"        // the person got as many starts and sends in 24 hours as the client allows
	FiringRunning    ReasonCode = "automation.running"     // the sequence's if_running prevented a start
	FiringMissed     ReasonCode = "automation.missed"      // the fact is too old: a server was down, a database failed over, or a backup was restored
	FiringPast       ReasonCode = "automation.past"        // all steps are in the past
	FiringRefused    ReasonCode = "automation.refused"     // a start or send could not be planned; Detail has the reason
	FiringNoDefault  ReasonCode = "automation.no_default"  // the session has no default sequence
	FiringGone       ReasonCode = "automation.gone"        // the sequence, session or template was deleted
	FiringAccount    ReasonCode = "automation.account"     // the client is suspended or expired
	FiringNoPhone    ReasonCode = "automation.no_phone"    // the hook's payload has no valid phone
	FiringChanged    ReasonCode = "automation.changed"     // the date changed, so the messages for the old date are cancelled
	FiringNoReplies  ReasonCode = "automation.unkept"      // the client stores no replies, so nobody knows whether the person answered
	FiringAnswered   ReasonCode = "automation.answered"    // the person answered in the meantime
	FiringNoDate     ReasonCode = "automation.no_date"     // only in a dry run: the contact has no date in the future
	FiringOptOut     ReasonCode = "automation.opt_out"     // only in a dry run: the text is an opt-out
	FiringStatus     ReasonCode = "automation.status"      // the booking has another status, or there is no such booking
	FiringNoBooking  ReasonCode = "automation.no_booking"  // there is no booking with the reference
	FiringStale      ReasonCode = "automation.stale"       // a newer change of the booking is known already
	FiringUnchanged  ReasonCode = "automation.unchanged"   // the booking is already as the action wants it
	FiringKept       ReasonCode = "automation.kept"        // another door set the booking's status, so the booking keeps it
	FiringOtherCall  ReasonCode = "automation.other_call"  // the hook's call is not about an appointment
	FiringWaits      ReasonCode = "automation.waits"       // the appointment is not confirmed yet in the hook's program
	FiringNotProgram ReasonCode = "automation.not_program" // the call does not look like one of the preset's program
	FiringOtherWords ReasonCode = "automation.words"       // only in a dry run: the text is not one of the trigger's words
)

// AutomationFacts contains the facts about a person that the store finds when a rule decides.
type AutomationFacts struct {
	Contact  *Contact                   // nil: the person is not a contact
	Answered time.Time                  // when the client's people last wrote to the person; zero: never
	Assigned bool                       // in Chatwoot, an agent is assigned to the conversation
	First    ReplyID                    // the first stored reply of the person; 0: none
	Replied  bool                       // only for a timer: the person wrote after the timer's Since
	Reached  int                        // number of starts and sends for the person within AutomatedWithin
	Acted    map[AutomationID]time.Time // when each rule last acted for the person, within MaxCooldownHours
	Running  map[SequenceID]bool        // messages of the sequence are pending for the person
	Status   string                     // the status of the wanted booking; "": there is none
}

// HookSecret is the secret part of a hook's address. The plain secret is never stored.
type HookSecret struct {
	Hash   KeyHash
	Sealed []byte // the sealed secret, so that the client can read it again
}

// Hook is the stored data of one hook.
type Hook struct {
	Client     ClientID
	Automation AutomationID
	Active     bool
	Map        map[string]string // see [Trigger].Map
	Preset     HookPreset        // see [Trigger].Preset
	Sealed     []byte
	Payload    []byte    // the last payload, at most MaxHookBody bytes; nil: none yet, or removed
	PayloadAt  time.Time // when the last call came; zero: no call yet
	Form       bool      // the payload is a form, not JSON
}

// HookCall is one call of a hook, after its mapping.
type HookCall struct {
	Automation AutomationID
	Key        string            // identifies the call, to recognise a repeat: the caller's idempotency key, or a hash of the body
	Phone      string            // "": the payload has no valid phone, so the call is only logged
	Fields     map[string]string // values by field name; at most MaxHookFields
	Payload    []byte
	Form       bool
	At         time.Time
}

// HookStore stores calls of hooks.
type HookStore interface {
	// HookOf returns the hook of an address, even if its rule is not active. Codes: not_found.
	HookOf(ctx context.Context, hash KeyHash) (Hook, error)
	// CallHook stores the payload. If the call is new, it also writes a trigger row, in the same transaction. CallHook
	// returns false for a repeat of a call within HookRepeat. Codes: not_found.
	CallHook(ctx context.Context, client ClientID, c HookCall) (fresh bool, err error)
}
