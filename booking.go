package puntuale

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A booking is an appointment of one person. It is a state, and its sequence says which messages each state wants:
//
//	a change ─▶ a new state ─▶ the messages it wants ─▶ their difference from those there are
//
// Everything that changes a booking, such as a call, a page or a rule, stores the new state and applies the difference
// in one transaction. The package booking computes the state and the difference, and plan the wanted messages.

// BookingID names a booking. Callers know a booking by its reference.
type BookingID int64

func (id BookingID) String() string { return strconv.FormatInt(int64(id), 10) }

const (
	// MaxBookingFields is how many bytes the fields of one booking may have, as JSON.
	MaxBookingFields = 64 << 10
	// NoticeDelay is how long after a change the messages about this change leave. A slip that is corrected within this
	// time is told once, or not at all.
	NoticeDelay = time.Minute
	// RunReference begins the reference of a booking that was started without one. Callers may not use it.
	RunReference = "run:"
)

// BookingStatus is the state of an appointment in the words of the API. The database contains the numbers.
type BookingStatus int8

const (
	BookingOpen BookingStatus = iota
	BookingConfirmed
	BookingCancelled
	BookingArrived
	BookingNoShow
)

var bookingStatuses = [...]string{"open", "confirmed", "cancelled", "arrived", "no_show"}

func (s BookingStatus) String() string {
	if s < 0 || int(s) >= len(bookingStatuses) {
		return fmt.Sprintf("BookingStatus(%d)", int8(s))
	}
	return bookingStatuses[s]
}

// BookingStatuses returns the words of all statuses.
func BookingStatuses() []string { return bookingStatuses[:] }

// ParseBookingStatus reads one of the five words.
func ParseBookingStatus(word string) (BookingStatus, error) {
	if i := slices.Index(bookingStatuses[:], word); i >= 0 {
		return BookingStatus(i), nil
	}
	return 0, fmt.Errorf("%q is not one of %s", word, strings.Join(bookingStatuses[:], ", "))
}

// BookingDoor says through what a booking was changed. The database contains the numbers.
type BookingDoor int8

const (
	DoorAPI BookingDoor = 1 + iota
	DoorPage
	DoorCalendar
	DoorRule
	DoorStop   // a stop of the booking's sequence
	DoorPerson // the person's own answer
	DoorErasure
)

var bookingDoors = [...]string{"", "api", "page", "calendar", "rule", "stop", "person", "erasure"}

func (d BookingDoor) String() string {
	if d < 0 || int(d) >= len(bookingDoors) {
		return fmt.Sprintf("BookingDoor(%d)", int8(d))
	}
	return bookingDoors[d]
}

// Booking is the state of one appointment.
type Booking struct {
	ID        BookingID
	Reference string // the caller's own name of the appointment, at most [MaxReference] characters
	Sequence  SequenceID
	Session   SessionID // 0: the sequence's session, or else the default one
	Phone     string
	Zone      string // IANA name; "": the client's zone
	Fields    map[string]json.RawMessage
	Date      time.Time // the main date
	Status    BookingStatus
	StatusBy  BookingDoor // what set the status
	Revision  int64       // how many changes there were; 0: the booking does not exist yet
	AsOf      AsOf
	Told      time.Time                // the main date that the person knows, while it is another one; zero: nothing that the person knows has moved
	Moments   map[string]BookingMoment // the latest change of each kind that messages can tell of, by anchor
	Created   time.Time
	Updated   time.Time
	Answer    *GivenAnswer // the person's latest answer about the main date; nil: none
	Page      string       // names the page of the confirmation; "": none
	Erased    bool         // the person was erased: phone, fields and reference are gone
}

// BookingMoment is when a booking last changed in one way.
type BookingMoment struct {
	Revision int64     `json:"revision"`
	At       time.Time `json:"at"`
}

// Anchors of the steps that tell of a booking's change, besides [AnchorStart] and date fields. Their time is the change
// plus [NoticeDelay].
const (
	BookingMovedAnchor     = "booking.moved" // the main date changed, compared with the date that the person knows
	BookingConfirmedAnchor = "booking.confirmed"
	BookingCancelledAnchor = "booking.cancelled"
	BookingNoShowAnchor    = "booking.no_show"
	BookingArrivedAnchor   = "booking.arrived"
)

// BookingAnchor reports whether an anchor is one of the changes of a booking.
func BookingAnchor(anchor string) bool {
	switch anchor {
	case BookingMovedAnchor, BookingConfirmedAnchor, BookingCancelledAnchor, BookingNoShowAnchor, BookingArrivedAnchor:
		return true
	}
	return false
}

// Version returns the version of a booking, for the header ETag.
func (b Booking) Version() Version { return versionOf(b.ID, b.Revision, b.AsOf) }

// Texts returns the values of a booking that rules read: its fields as texts, and its reference.
func (b Booking) Texts() map[string]string {
	all := make(map[string]string, len(b.Fields)+1)
	for name, raw := range b.Fields {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw) // a number
		}
		all[name] = text
	}
	all[ReferenceField] = b.Reference
	return all
}

// AsOf is a caller's own order of its changes: a time, or a whole number that grows. The zero value is none.
type AsOf struct {
	Kind  AsOfKind
	Value int64 // the number, or microseconds of the Unix epoch
}

// AsOfKind says what an [AsOf] is.
type AsOfKind int8

const (
	AsOfNone AsOfKind = iota
	AsOfNumber
	AsOfTime
)

// BookingKey names what one step wants for one booking: the step, and which occurrence of its anchor.
type BookingKey struct {
	Sequence SequenceID
	Step     string // the step's id
	// Occurrence is the anchor's value: microseconds of the Unix epoch; for a date without a time of day, the date as a
	// number ([Date.Int]); for the change of a booking, its revision.
	Occurrence int64
}

// WantedMessage is a message that a state of a booking wants.
type WantedMessage struct {
	PlannedMessage
	Key    BookingKey
	Asks   time.Time  // the main date that the message's buttons ask about; zero: it has none
	Timing string     // hash of what decides when the message leaves
	Digest string     // hash of Timing and of what the message shows
	Past   ReasonCode // the moment is past, and if_past leaves the message out; "": it is not past
	Moment time.Time  // the past moment
	Reject bool       // if_past refuses the whole change instead
}

// BookingFate says what became of the message of a ledger's row, where the message's own row does not.
type BookingFate int8

const (
	FateMessage   BookingFate = iota // as the message's row says; without such a row, the message ended long ago
	FateWithdrawn                    // the difference cancelled it, so the same key may get a new message
	FateByHand                       // a person moved it or sent it again
)

// BookingStep is a row of a booking's ledger: what one key got.
type BookingStep struct {
	Key      BookingKey
	Phone    string // the recipient
	Message  MessageID
	Previous MessageID // the message that this one replaced; 0: none
	Timing   string
	Digest   string
	Fate     BookingFate

	// The message's row, if it still exists.
	There      bool
	State      State
	Intent     int64
	Session    SessionID
	Attempt    int
	Desired    time.Time
	Due        time.Time
	Next       time.Time
	Left       time.Time // when it left; zero: it is not known to have left
	ValidUntil time.Time // not positive for a message that was stopped in flight
	Stopped    bool
}

// Planned returns when the message is, or was, expected to leave.
func (s BookingStep) Planned() time.Time {
	if !s.Left.IsZero() {
		return s.Left
	}
	return s.Next
}

// Pending reports whether the message may still leave.
func (s BookingStep) Pending() bool { return s.There && s.State == Pending && !s.Stopped }

// BookingState is all that a change of a booking depends on.
type BookingState struct {
	Booking // Revision 0: there is none with the reference
	Steps   []BookingStep
	Names   []string  // all names of the person who has the asked phone, or else the booking's phone
	Left    bool      // the asked phone is a number that the booking's person left
	MovedOn BookingID // the booking that had the reference before it got another one; 0: none. Only read for rules
}

// BookingChange is what a change of a booking does.
type BookingChange struct {
	Booking             // the new state
	Changed bool        // false: at most AsOf is new
	By      BookingDoor // through what
	What    []string    // what changed, for the history
	Kept    []string    // members that kept their value although the caller gave another one
	Events  []EventType
	Effect  ReplyEffect // of the reply that changes the booking
	BookingDifference
}

// BookingDifference is what makes a booking's messages those that its state wants. The numbers are places in
// [BookingState].Steps.
type BookingDifference struct {
	New      []NewBookingMessage
	Withdraw []Withdrawal // messages that leave no more
	InFlight []int        // messages that are being sent, or may have been; those in Stop are not tried again
	Stop     []int
	Pending  []int // messages that stay
	Skipped  []SkippedStep
}

// NewBookingMessage is a message that a change plans.
type NewBookingMessage struct {
	WantedMessage
	Before int       // place of the row whose message this one replaces; -1: none
	Same   bool      // the key is the same, so the former message becomes RESCHEDULED
	Next   time.Time // when the dispatcher looks at it first; zero: when it is due
}

// Withdrawal is a message that a change takes back.
type Withdrawal struct {
	Step   int
	Reason ReasonCode
}

// Reasons of messages that a booking's change took back.
const (
	ReasonBookingCancelled ReasonCode = "booking.cancelled"
	ReasonBookingConfirmed ReasonCode = "booking.confirmed"
	ReasonBookingMoved     ReasonCode = "booking.moved"
	ReasonBookingOver      ReasonCode = "booking.over"
	ReasonBookingPerson    ReasonCode = "booking.person"
	ReasonBookingSequence  ReasonCode = "booking.sequence"
)

// PutBooking asks the store to change a booking in one transaction.
type PutBooking struct {
	Reference string // "": a new booking, whose reference is "run:" and the id of its run
	Follow    bool   // a reference that a booking had before names no booking any more
	Former    string // with Follow: if no booking has Reference, the one with this reference gets it; "": none
	Phone     string // the person of the new state; "": the booking's own
	Day       Date   // today in the client's time zone; the call is counted on this day
	Now       time.Time
	Always    bool          // the call counts even if it changes nothing
	Unrefused bool          // the daily cap does not refuse the call
	Replan    bool          // background work: on SQLite the transaction gives way to calls, and it does not count as a call
	Erased    string        // mark of the reference: a booking of an erased person that had it must not be made again; "": it may
	Request   []byte        // the call's body, for the run
	Run       Run           // the new run, without steps, phone and reference
	Revision  int64         // as in [StartRun]
	Keep      *Idempotency  // nil: none; Answer gets the [PutBookingResult]
	Reply     *TakenMessage // the reply that answers a question of the booking, which the transaction stores with [BookingChange].Effect; nil: none

	// Unchanged is what Decide made of the state that was read before, if nothing but AsOf is new. If the booking is
	// still as it was in Read, the transaction asks no further. nil: something else is new.
	Unchanged *BookingChange
	Read      BookingState

	// Decide computes the change from the state that the transaction has locked. It may be called several times. An
	// error ends the transaction.
	Decide func(BookingState) (BookingChange, error)
}

// PutBookingResult is what a change of a booking did.
type PutBookingResult struct {
	BookingChange
	Before []BookingStep // the ledger before the change
	IDs    []MessageID   // of BookingChange.New
	Usage  Usage
}

// BookingFilter chooses the bookings that match all its set members.
type BookingFilter struct {
	From, To time.Time // main dates: From inclusive, To exclusive
	Statuses []BookingStatus
	Names    []string // names of a person
	Sequence SequenceID
	Text     string // words of the reference or of the fields
	Look     int    // how many bookings a search by Text reads for one page; 0: 5,000
	ID       BookingID
	Message  MessageID   // a message of the booking
	Made     BookingDoor // what made the booking
}

// MadeBooking is a booking, and what made it.
type MadeBooking struct {
	Booking
	Made BookingDoor
}

// MaxReconciled is how many bookings one call of reconcile may name, and how many others it may find.
const MaxReconciled = 10_000

// ReplanState is the state of a [Replan]. The database contains the numbers.
type ReplanState int8

const (
	ReplanRunning ReplanState = iota
	ReplanPaused
	ReplanCancelled
	ReplanDone
)

// Replan applies an edited sequence to the bookings that there are, in the order of their ids. Each booking is changed in
// a transaction of its own, and a booking that is already as the sequence wants it stays. So a part that is done twice
// changes nothing.
type Replan struct {
	Client   ClientID
	Sequence SequenceID
	State    ReplanState
	Door     BookingDoor // through what it was started
	Edited   time.Time   // the sequence's last change, as it is being applied
	Cursor   BookingID   // the last booking that was looked at
	Last     BookingID   // the last booking that there was
	Bookings int         // how many bookings it concerns
	ReplanCounts
	Started time.Time
	Ended   time.Time
	Held    bool      // the client is held after a restore, so nothing is done
	Owned   time.Time // until when the node owns it that works on it
}

// ReplanCounts is what a replan has done.
type ReplanCounts struct {
	Done                      int // bookings that were looked at
	Planned, Moved, Cancelled int // messages
	Refused                   int // bookings that could not be planned, and stay as they were
}

// Add adds what was done with more bookings.
func (c *ReplanCounts) Add(more ReplanCounts) {
	c.Done, c.Refused = c.Done+more.Done, c.Refused+more.Refused
	c.Planned, c.Moved, c.Cancelled = c.Planned+more.Planned, c.Moved+more.Moved, c.Cancelled+more.Cancelled
}

// ReplanFilter names bookings that an edited sequence may still concern: those after After up to Last that are not
// cancelled, and whose main date is after Since or that have a pending message.
type ReplanFilter struct {
	Sequence    SequenceID
	After, Last BookingID // Last 0: all
	Since       time.Time
}

// BookingCounts is how many bookings have each status.
type BookingCounts [len(bookingStatuses)]int

// Total returns how many bookings there are.
func (c BookingCounts) Total() (n int) {
	for _, some := range c {
		n += some
	}
	return n
}

// BookingEntry is one change in a booking's history.
type BookingEntry struct {
	Revision int64
	At       time.Time
	By       BookingDoor
	What     []string
}

// Limits of the buttons under a message.
const (
	MaxStepButtons = 3
	MaxButtonLabel = 20 // characters
	// MaxPayload is how many characters the payload of a button or of a row of a list may have.
	MaxPayload = 128
	// MaxAsking is how many characters the text of a message with buttons may have, with the lines that networks without
	// buttons show instead of them. It is Meta's limit, and holds on every connection, because a sequence may change its
	// session.
	MaxAsking = 1024
	// AnswerTime is how long after a question the person may answer it in words. Buttons work longer.
	AnswerTime = 14 * 24 * time.Hour
)

// ButtonEffect says what a press of a button does.
type ButtonEffect string

const (
	ButtonConfirms ButtonEffect = "confirm" // confirms the booking
	ButtonCancels  ButtonEffect = "cancel"  // cancels the booking
	ButtonAnswers  ButtonEffect = "answer"  // is only told
)

// StepButton is a button under a message. The wire and stores use the same JSON form.
type StepButton struct {
	Label   string       `json:"label"`
	Does    ButtonEffect `json:"does"`
	Payload string       `json:"payload,omitempty"` // a reply tells it if the person pressed the button; "": the network's own one
}

// ButtonSet contains the buttons under a message. It is not changed after it was made.
type ButtonSet struct {
	Buttons []StepButton `json:"buttons"`
	Line    string       `json:"line,omitempty"` // the client's own line above the numbers ([ButtonLines]); "": the usual one
}

// Buttons returns the buttons under the message.
func (c *Content) Buttons() []StepButton {
	if c.Asks == nil {
		return nil
	}
	return c.Asks.Buttons
}

// DefaultButtonLine is the line above the numbered lines that networks without buttons show.
const DefaultButtonLine = "Rispondi con il numero:"

// Choices returns what a person can choose under the message, as buttons: the buttons themselves, or the rows of the list.
func (c *Content) Choices() []StepButton {
	if c.Interactive == nil || c.Interactive.List == nil {
		return c.Buttons()
	}
	var all []StepButton
	for _, section := range c.Interactive.List.Sections {
		for _, row := range section.Rows {
			all = append(all, StepButton{Label: row.Title, Does: ButtonAnswers, Payload: row.Payload})
		}
	}
	return all
}

// Shown returns the text of a content as networks without buttons show it: each button and each row of a list is a
// numbered line, and a link is its address.
func (c *Content) Shown() string {
	text := c.Text + c.Interactive.Lines()
	if c.Asks != nil {
		text += ButtonLines(c.Asks.Buttons, c.Asks.Line)
	}
	return text
}

// Flatten replaces buttons and interactive parts by what networks without them show.
func (c *Content) Flatten() { c.Text, c.Asks, c.Interactive = c.Shown(), nil, nil }

// ButtonLines returns what [Content.Shown] adds to the text. above is the line above the numbers; "": the usual one.
func ButtonLines(all []StepButton, above string) string {
	if above == "" {
		above = DefaultButtonLine
	}
	var b strings.Builder
	b.WriteString("\n\n" + above)
	for i, button := range all {
		b.WriteString("\n" + strconv.Itoa(i+1) + ". " + button.Label)
	}
	return b.String()
}

// AnswerLength returns how many characters buttons may add to a text.
func AnswerLength(all []StepButton, above string) int {
	if len(all) == 0 {
		return 0
	}
	return utf8.RuneCountInString(ButtonLines(all, above))
}

// AnswerMatch says how an answer found its question, in the words of the API.
type AnswerMatch string

const (
	MatchPayload AnswerMatch = "payload" // the network told the button's payload
	MatchQuote   AnswerMatch = "quote"   // the person quoted the message
	MatchLatest  AnswerMatch = "latest"  // a number or a label answers the one open question
	MatchWord    AnswerMatch = "word"    // one of the client's words answers the one open question
	MatchPage    AnswerMatch = "page"    // the page of the confirmation
)

// GivenAnswer is what a person answered about a booking.
type GivenAnswer struct {
	Does    ButtonEffect `json:"does"`
	Label   string       `json:"label"`
	Step    string       `json:"step"`              // id of the step that asked; "": the page
	Message MessageID    `json:"message,omitempty"` // the message that asked; 0: the page
	At      time.Time    `json:"at"`
	Matched AnswerMatch  `json:"matched"`
	Stale   bool         `json:"stale"` // the question was about another date
}

// Question is a message with buttons that a booking sent to a person.
type Question struct {
	Booking   BookingID
	Reference string
	Sequence  SequenceID
	Step      string // the step's id
	Message   MessageID
	Session   SessionID // that sent it; 0: the message was archived
	Phone     string
	Buttons   []StepButton
	Date      time.Time // the main date that it asked about
	Now       time.Time // the booking's main date now
	Asked     time.Time // when it was sent; zero: the message was archived
	Answered  bool
}

// Open reports whether words can answer the question.
func (q *Question) Open(now time.Time, session SessionID) bool {
	return !q.Answered && q.Session == session && q.Date.After(now) && now.Sub(q.Asked) <= AnswerTime
}

// OpenQuestions returns the questions that words could answer now: of each booking, the latest one.
func OpenQuestions(all []Question, now time.Time, session SessionID) []Question {
	var open []Question
	for _, q := range all {
		if !q.Open(now, session) {
			continue
		}
		i := slices.IndexFunc(open, func(o Question) bool { return o.Booking == q.Booking })
		switch {
		case i < 0:
			open = append(open, q)
		case q.Asked.After(open[i].Asked):
			open[i] = q
		}
	}
	return open
}

// Tap names a button of a message, as a payload that only this server can have made does.
type Tap struct {
	Message MessageID
	Button  int    // position among [Content.Choices]
	Payload string // the button's own payload; "": none
}

// AskedQuestions is what the store knows about the questions that a reply may answer.
type AskedQuestions struct {
	Questions []Question
	InReplyTo MessageID // the message whose button was pressed, or that was quoted; 0: none
	Matched   AnswerMatch
	Settings  ClientSettings
}
