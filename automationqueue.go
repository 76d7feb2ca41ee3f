package puntuale

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// TriggerFact is a kind of fact that may trigger rules. The database stores its number. It is the number of an event type,
// except for FactContact and FactHook: the events with their numbers trigger no rules.
type TriggerFact int8

const (
	FactReply    = TriggerFact(EventReplyReceived)
	FactSent     = TriggerFact(EventMessageSent)
	FactFailed   = TriggerFact(EventMessageFailed)
	FactRead     = TriggerFact(EventMessageRead)
	FactClicked  = TriggerFact(EventLinkClicked)
	FactBooked   = TriggerFact(EventBookingCreated) // the facts about bookings are in the range FactBooked to FactAnswered; see [TriggerFact.OfBooking]
	FactAnswered = TriggerFact(EventBookingAnswered)
	FactContact  = TriggerFact(40) // a contact's date changed, or the contact was deleted
	FactHook     = TriggerFact(41)
)

// OfMessage reports whether the fact is what became of a message.
func (f TriggerFact) OfMessage() bool {
	return f == FactSent || f == FactFailed || f == FactRead || f == FactClicked
}

// OfBooking reports whether the fact is what became of a booking.
func (f TriggerFact) OfBooking() bool { return EventType(f).OfBooking() }

// TakenTrigger is a trigger row that a runner took. No other runner gets it within [TriggerLease].
type TakenTrigger struct {
	ID       int64
	Lease    int64 // the row's next_at, which the runner set. The runner removes the row only if next_at still has this value
	Client   ClientID
	Fact     TriggerFact
	Subject  int64 // id of a reply, a message, a contact, a rule or a booking
	Attempts int   // how many attempts failed
	Fault    error // why the row cannot be decoded; nil: it can
	At       time.Time

	Phone      string    // "": the person was erased, or there is no person
	Session    SessionID // 0: none
	Sequence   SequenceID
	Run        RunID
	Ended      bool      // no message of the run is pending
	LastDue    time.Time // only for a message: when the run's last message is due
	Depth      int
	Occurrence string

	Wrote  time.Time // only for a reply: when the person wrote it
	Reply  ReplyKind // only for a reply
	Text   string    // only for a reply
	Effect ReplyEffect
	Fields map[string]string // only for a call of a hook or a booking
}

// TriggerLease is how long a trigger row belongs to the runner that took it. After this time, any runner may take the
// row. If the runner's node leaves the fleet or dies, the row is free at once.
const TriggerLease = 30 * time.Second

// MaxTriggerAttempts is how many attempts may fail. Then the row is set aside, and no runner takes it again.
const MaxTriggerAttempts = 5

// ActiveAutomation is an active rule with the data that a runner needs.
type ActiveAutomation struct {
	Automation
	Stamp int64     // grows with each change of the rule
	Armed time.Time // when the rule became active; older facts do not trigger it
	Fault error     // why the rule cannot be decoded; nil: it can
}

// AutomatedClient is a client with active rules.
type AutomatedClient struct {
	ID       ClientID
	Since    time.Time // if a fact is older, no rule acts, and the log says missed; zero: no limit
	Zone     string
	Settings ClientSettings
	Rules    []ActiveAutomation // sorted by id
}

// AutomationAct is what one rule does for one person. One transaction does all of it, or nothing.
type AutomationAct struct {
	Rule       AutomationID
	Stamp      int64 // the rule's stamp must still have this value
	Phone      string
	Occurrence string
	Keep       time.Time   // until when the database contains the occurrence
	Depth      int         // the trigger's depth
	Contact    *Contact    // the contact when the act was planned; nil: the person was no contact
	Wanted     WantedFacts // which facts Decide needs

	// Decide gets the facts that the transaction reads. It returns why the rule must not act, or "" if the rule acts.
	// Decide is pure. The store may call it more than once.
	Decide func(AutomationFacts) ReasonCode

	Stops     []SequenceID // sequences that the act stops; 0: all sequences
	Starts    []StartRun
	Bookings  []PutBooking // an act with bookings is the only act of its batch
	Add       []string     // tags that the act adds to the contact
	Remove    []string
	Blacklist *BlacklistEntry

	Reason ReasonCode // why the rule does not act, if that is known already; "": Decide decides
	Detail string

	// At most one of the next three fields is set. It is the row that led to the act. The transaction removes or moves
	// this row. If the row changed after the act was planned, the transaction does nothing.
	Trigger *TakenTrigger // several acts of a batch may name the same trigger; the last of these acts removes its row
	Timer   *AutomationTimer
	Date    *AutomationDate

	Outcome ActOutcome         // set by the method Act
	Message []MessageID        // the first message of each start and send, and of each booking that planned messages
	Reached int                // how many starts and sends were done
	Booked  []PutBookingResult // what each of Bookings did; not changed, if it was left out
}

// WantedFacts says which facts about a person a decision needs. The contact is always read. Facts that are not wanted
// stay zero.
type WantedFacts struct {
	Sequences []SequenceID // the sequences that Running must contain
	Takeover  bool         // Decide needs Answered and Assigned
	Cooldown  bool         // Decide needs Acted
	Limit     bool         // Decide needs Reached
	First     bool         // Decide needs First
	Booking   string       // reference of the booking whose Status Decide needs; "": none. The persons are then one person
}

// WantedFacts returns which facts a decision about the rule needs.
func (a *Automation) WantedFacts() WantedFacts {
	w := WantedFacts{
		Takeover: a.Trigger.Kind.Personal(), Cooldown: a.Conditions.CooldownHours > 0, First: a.Trigger.First,
		Limit: slices.ContainsFunc(a.Actions, Action.CountsForLimit),
	}
	if id := a.Conditions.NotIn.ID(); id != 0 {
		w.Sequences = []SequenceID{id}
	}
	return w
}

// Union returns the facts that w or o wants.
func (w WantedFacts) Union(o WantedFacts) WantedFacts {
	all := slices.Concat(w.Sequences, o.Sequences)
	slices.Sort(all)
	return WantedFacts{slices.Compact(all), w.Takeover || o.Takeover, w.Cooldown || o.Cooldown, w.Limit || o.Limit, w.First || o.First, cmp.Or(w.Booking, o.Booking)}
}

// ActOutcome says what happened to an act.
type ActOutcome int8

const (
	ActDone    ActOutcome = iota // the act was done, or the log says why not
	ActAgain                     // something changed after the act was planned: the runner must plan it again
	ActDropped                   // another runner was faster, or the rule already acted for this occurrence
)

// ActBatch contains acts for one client. Each act is for a different person.
type ActBatch struct {
	Client   ClientID
	Day      Date // today in the client's time zone
	Now      time.Time
	Acts     []*AutomationAct
	Triggers []TakenTrigger // trigger rows to remove
}

// AutomationTimer is a time at which a rule acts if a person did not answer a run.
type AutomationTimer struct {
	Client ClientID
	Rule   AutomationID
	Run    RunID
	Phone  string
	Since  time.Time // when the run's last message was completed
	Due    time.Time

	Session  SessionID
	Depth    int
	Answered bool // the person wrote after Since
}

// AutomationDate is a date in a contact's field that a rule waits for.
type AutomationDate struct {
	Client  ClientID
	Rule    AutomationID
	Contact Contact
	Value   string
	Version int64
	Since   time.Time // when the rule first read the value
	Day     Date      // the next day on which the date comes
	Run     RunID     // the run that the rule last started for this date; 0: none

	Next Date // set by the runner: the next day after Day on which the date comes; zero: there is none
}

// Occurrence names the date's next day and its version. The version changes with the date's value. So a changed value
// is a new occurrence, even if it has the same next day.
func (d *AutomationDate) Occurrence() string { return fmt.Sprintf("%s/%d", d.Day, d.Version) }

// actRequest contains those members of an act's request that StartedFor reads.
type actRequest struct {
	Rule       AutomationID `json:"automation,string"`
	Occurrence string       `json:"occurrence"`
}

// ActRequest returns the request that is stored with a run if a rule's act started the run. It contains the fields'
// values, the rule, the occurrence and the phone number.
func ActRequest(rule AutomationID, occurrence, phone string, values map[string]string) []byte {
	body := maps.Clone(values)
	if body == nil {
		body = map[string]string{}
	}
	body["automation"], body["occurrence"], body["phone"] = rule.String(), occurrence, phone
	text, err := json.Marshal(body)
	if err != nil {
		return nil // encoding a map of strings cannot fail
	}
	return text
}

// StartedFor reports whether the rule started the run with this request. The run must be for the value of a contact's
// date that has the given version.
func StartedFor(request []byte, rule AutomationID, version int64) bool {
	var r actRequest
	return json.Unmarshal(request, &r) == nil && r.Rule == rule && strings.HasSuffix(r.Occurrence, fmt.Sprintf("/%d", version))
}

// DateRule is an active rule whose trigger is a date.
type DateRule struct {
	Client  ClientID
	Rule    ActiveAutomation
	Scanned bool // the rule has read all contacts
}
