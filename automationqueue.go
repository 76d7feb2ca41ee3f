package puntuale

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// TriggerFact is a fact that may trigger rules. Stores keep its number. Those up to 39 are numbers of event types.
type TriggerFact int8

const (
	FactReply   = TriggerFact(EventReplyReceived)
	FactSent    = TriggerFact(EventMessageSent)
	FactFailed  = TriggerFact(EventMessageFailed)
	FactRead    = TriggerFact(EventMessageRead)
	FactContact = TriggerFact(40) // a contact's date changed, or the contact is gone
	FactHook    = TriggerFact(41)
)

// TakenTrigger is a trigger that a runner took. Nobody else takes it for [TriggerLease].
type TakenTrigger struct {
	ID      int64
	Lease   int64 // what the row says while it is taken
	Client  ClientID
	Fact    TriggerFact
	Subject int64 // a reply, a message, a contact or a rule
	At      time.Time

	Phone      string    // "": erased, or nobody
	Session    SessionID // 0: none
	Sequence   SequenceID
	Run        RunID
	Ended      bool      // nothing of the run is pending
	LastDue    time.Time // of a message: when the run's last message is due
	Depth      int
	Occurrence string

	Wrote  time.Time // of a reply: when the person wrote it
	Reply  ReplyKind // likewise
	Text   string    // likewise
	Effect ReplyEffect
	Fields map[string]string // of a hook's call
}

// TriggerLease is how long a runner has for a trigger.
const TriggerLease = 30 * time.Second

// ActiveAutomation is an active rule as its runner needs it.
type ActiveAutomation struct {
	Automation
	Stamp int64     // grows with each change
	Armed time.Time // older facts do not trigger it
}

// AutomatedClient is a client that has active rules.
type AutomatedClient struct {
	ID       ClientID
	Since    time.Time // older facts are missed; zero: none are
	Zone     string
	Settings ClientSettings
	Rules    []ActiveAutomation // by id
}

// AutomationAct is what one rule does for one person. All of it happens in one transaction, or nothing.
type AutomationAct struct {
	Rule       AutomationID
	Stamp      int64 // the rule must not have changed
	Phone      string
	Occurrence string
	Keep       time.Time   // until when the occurrence is remembered
	Depth      int         // of the trigger
	Contact    *Contact    // as it was when the act was planned; nil: the person was no contact
	Wanted     WantedFacts // what Decide looks at

	// Decide decides with what is known inside the transaction; "" acts. It is pure, and may be called more than once.
	Decide func(AutomationFacts) ReasonCode

	Stops     []SequenceID // 0: all
	Starts    []StartRun
	Add       []string // tags
	Remove    []string
	Blacklist *BlacklistEntry

	Reason ReasonCode // why it does not act, decided before; "": Decide decides
	Detail string

	// At most one of these led to the act. The transaction removes or moves its row, or does nothing.
	Trigger *TakenTrigger // removed with the last act of a batch that names it
	Timer   *AutomationTimer
	Date    *AutomationDate

	Outcome ActOutcome  // set by Act
	Message []MessageID // the first one of each start and send
}

// WantedFacts says which facts about a person a decision looks at. The contact is always read. Facts that nobody looks
// at stay zero.
type WantedFacts struct {
	Sequences []SequenceID // Running has these
	Takeover  bool         // Answered and Assigned
	Cooldown  bool         // Acted
	Limit     bool         // Reached
	First     bool         // First
}

// WantedFacts returns what decisions about the rule look at.
func (a *Automation) WantedFacts() WantedFacts {
	w := WantedFacts{
		Takeover: a.Trigger.Kind.Personal(), Cooldown: a.Conditions.CooldownHours > 0, First: a.Trigger.First,
		Limit: slices.ContainsFunc(a.Actions, Action.Reaches),
	}
	if id := a.Conditions.NotIn.ID(); id != 0 {
		w.Sequences = []SequenceID{id}
	}
	return w
}

// Join adds what others want.
func (w WantedFacts) Join(o WantedFacts) WantedFacts {
	all := slices.Concat(w.Sequences, o.Sequences)
	slices.Sort(all)
	return WantedFacts{slices.Compact(all), w.Takeover || o.Takeover, w.Cooldown || o.Cooldown, w.Limit || o.Limit, w.First || o.First}
}

// ActOutcome says what became of an act.
type ActOutcome int8

const (
	ActDone    ActOutcome = iota // the log has a line
	ActAgain                     // something changed since it was planned: plan it again
	ActDropped                   // another runner was first, or the rule acted for the occurrence before
)

// ActBatch are acts of one client, each for another person.
type ActBatch struct {
	Client   ClientID
	Day      Date // the client's present day
	Now      time.Time
	Acts     []*AutomationAct
	Triggers []TakenTrigger // are removed
}

// AutomationTimer is somebody's silence that a rule waits for.
type AutomationTimer struct {
	Client ClientID
	Rule   AutomationID
	Run    RunID
	Phone  string
	Since  time.Time // when the run's last message was completed
	Due    time.Time

	Session  SessionID
	Depth    int
	Answered bool // the person wrote since then
}

// AutomationDate is a contact's date that a rule waits for.
type AutomationDate struct {
	Client  ClientID
	Rule    AutomationID
	Contact Contact
	Value   string
	Version int64
	Since   time.Time // when the rule learned the value
	Day     Date      // the next day on which the date comes
	Run     RunID     // that was started last for it; 0: none

	Next Date // set by the runner: the day after this one; zero: none comes
}

// Occurrence names the date's next day and its version. So a changed date is another occurrence, even on the same day.
func (d *AutomationDate) Occurrence() string { return fmt.Sprintf("%s/%d", d.Day, d.Version) }

// actRequest holds the members of an act's request that programs read again.
type actRequest struct {
	Rule       AutomationID `json:"automation,string"`
	Occurrence string       `json:"occurrence"`
}

// ActRequest returns what a run of an act stores as its request: the values of the fields, the rule, the occurrence and the phone number.
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

// StartedFor reports whether a run with this request was started by a rule for one value of a contact's date.
func StartedFor(request []byte, rule AutomationID, version int64) bool {
	var r actRequest
	return json.Unmarshal(request, &r) == nil && r.Rule == rule && strings.HasSuffix(r.Occurrence, fmt.Sprintf("/%d", version))
}

// DateRule is an active rule for dates.
type DateRule struct {
	Client  ClientID
	Rule    ActiveAutomation
	Scanned bool // all contacts were read
}

// AutomationQueue is what a runner takes, and where it acts. Any number of nodes may call its methods at once.
type AutomationQueue interface {
	// TakeTriggers takes triggers that are due, except those of changed contacts, and returns them oldest first.
	TakeTriggers(ctx context.Context, now time.Time, limit int) ([]TakenTrigger, error)
	// AutomatedClients reads the active rules of clients.
	AutomatedClients(ctx context.Context, ids []ClientID) (map[ClientID]*AutomatedClient, error)
	// PersonFacts reads what decisions need, by phone.
	PersonFacts(ctx context.Context, client ClientID, phones []string, wanted WantedFacts, now time.Time) (map[string]*AutomationFacts, error)
	// Act acts in one transaction, and sets the outcome of each act. Codes: not_found (the client is gone).
	Act(ctx context.Context, b *ActBatch) error
	// SetTimers sets timers, or moves those of the same rule and run, and removes the triggers.
	SetTimers(ctx context.Context, all []AutomationTimer, triggers []TakenTrigger) error
	// DropTimers removes timers that have not moved.
	DropTimers(ctx context.Context, all []AutomationTimer) error
	// DueTimers returns timers that are due, with whether the person answered.
	DueTimers(ctx context.Context, now time.Time, limit int) ([]AutomationTimer, error)
}

// DateQueue is how a runner finds dates.
type DateQueue interface {
	// DateRules lists the active rules for dates of all clients.
	DateRules(ctx context.Context) ([]DateRule, error)
	// TakeContacts takes triggers of changed contacts that are due, and returns them oldest first.
	TakeContacts(ctx context.Context, now time.Time, limit int) ([]TakenTrigger, error)
	// ScanDates reads the dates of at most limit contacts that the rule has not read yet. It skips dates that came while the rule was off. It
	// reports whether there are more contacts. next returns the first day on which a value comes, on or after the day of from; zero: none comes.
	// next is pure.
	ScanDates(ctx context.Context, r DateRule, limit int, now time.Time, next func(value string, from time.Time) Date) (more bool, err error)
	// FollowContacts compares the dates of changed contacts with the client's active rules for dates. It cancels messages that were planned for
	// former dates, and removes the triggers. A date counts as known since the contact changed. next is as above, for any of the rules.
	FollowContacts(ctx context.Context, client ClientID, triggers []TakenTrigger, now time.Time, next func(rule ActiveAutomation, value string, from time.Time) Date) error
	// DueDates returns dates that come by a day, earliest first.
	DueDates(ctx context.Context, r DateRule, lastDay Date, limit int) ([]AutomationDate, error)
}
