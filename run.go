package puntuale

import (
	"fmt"
	"strconv"
	"time"
)

// Run is one start of a sequence for one recipient. The store writes all its messages in one transaction. A single or
// mass send is a run of one step without a sequence. The texts are in the run, because message rows are written
// several times and should stay small.
type Run struct {
	ID        RunID // the store sets it
	Client    ClientID
	Sequence  SequenceID // 0: none
	Session   SessionID
	Phone     string // "+…", or the id of a group
	Origin    Origin
	Rule      AutomationID // rule that started the run; 0: none
	Depth     int          // how many automations triggered each other before this run started; 0: no automation started the run
	Campaign  CampaignID   // campaign that started the run; 0: none
	Name      string       // name of a single or mass send; "" for a sequence
	Reference string       // the caller's own name for the run's subject, at most [MaxReference] characters; "": none
	Zone      string       // IANA name of the zone in which the run was planned
	Received  time.Time
	Request   []byte // the call's body, unchanged

	ClientName   string // the client's name when the run started
	SequenceName string

	Steps []FrozenStep // one step for each message, in order
}

// FrozenStep contains what a run stores about one planned message. The store writes it as JSON.
type FrozenStep struct {
	Step    int     `json:"step"`
	Content Content `json:"content"`
	Window  *Window `json:"window,omitempty"`

	// Dated and Limit are set only for messages of a campaign; see [PlannedMessage].
	Dated   bool      `json:"dated,omitempty"`
	Variant int8      `json:"variant,omitempty"` // see [PlannedMessage]
	ID      int32     `json:"id,omitempty"`      // the step's id plus 1; 0: its position
	Limit   time.Time `json:"limit,omitzero"`

	// Validity is how long after its due time the message may leave. Pauses delay the deadline, but not the due time, so
	// the message itself does not say it. Set only for messages of a campaign.
	Validity time.Duration `json:"validity,omitempty"`
}

// FrozenOf returns what a run stores about a message of a start.
func FrozenOf(m *PlannedMessage) FrozenStep {
	return FrozenStep{Step: m.Step, ID: FrozenID(m.StepID), Variant: m.Variant, Content: m.Content, Window: m.Window}
}

// FrozenID returns the form of a step's id in a [FrozenStep].
func FrozenID(id string) int32 {
	n, err := strconv.ParseInt(id, 10, 31)
	if err != nil {
		return 0
	}
	return int32(n) + 1
}

// IfRunning says what a start does if the same sequence still has pending messages to the same recipient.
type IfRunning string

const (
	IfRunningAllow   IfRunning = "allow"   // start another run
	IfRunningSkip    IfRunning = "skip"    // return the ids of the running messages, and start nothing
	IfRunningRestart IfRunning = "restart" // stop the earlier runs and start the new run, in one transaction
	IfRunningReject  IfRunning = "reject"  // refuse the start with CodeConflict
)

// ParseIfRunning reads one of the four words. "" means allow.
func ParseIfRunning(word string) (IfRunning, error) {
	switch w := IfRunning(word); w {
	case "":
		return IfRunningAllow, nil
	case IfRunningAllow, IfRunningSkip, IfRunningRestart, IfRunningReject:
		return w, nil
	}
	return "", fmt.Errorf("%q is not one of allow, skip, restart, reject", word)
}

// Usage is how many calls a client has made today, and its daily cap.
type Usage struct {
	Cap  int64 `json:"cap"`
	Used int64 `json:"used"`
}

// Remaining returns how many more calls the cap allows, at least 0.
func (u Usage) Remaining() int64 { return max(0, u.Cap-u.Used) }

// UncountedCap is the cap that the API shows for a client without a cap. Calls of this client are never refused.
const UncountedCap = 1_000_000

// StartRun asks the store to write a run and its messages. One transaction also changes the client's usage and the
// call's idempotency record.
type StartRun struct {
	Run      Run
	Messages []PlannedMessage // in the order of the steps; if empty, nothing is stored, but the call counts
	Skipped  []SkippedStep    // stored with the answer, so that a repeat of the call returns the same
	Notes    StartNotes       // stored in the same way

	Day Date // today in the client's time zone; the call is counted on this day
	Now time.Time

	// IfRunning says what happens if runs of the sequence are already running for the recipient. If Run has a
	// reference, the runs with the same reference count instead, whatever their recipient is. Of a campaign's runs with
	// this reference, only those for the recipient count. A campaign ignores its own reference here.
	IfRunning   IfRunning
	Idempotency *Idempotency // nil: none; Answer gets the [StartedRun] and returns its JSON form

	// Revision is the client revision at which the caller read the data for the start. 0: the caller read the data
	// for this call.
	Revision int64
}

// StartedRun is the answer to a [StartRun]. Its JSON form is stored for repeats of the call.
type StartedRun struct {
	IDs     []MessageID   `json:"ids"`
	Usage   Usage         `json:"usage"`
	Skipped []SkippedStep `json:"skipped,omitempty"`
	Notes   StartNotes    `json:"notes,omitzero"`
}

// StartNotes are remarks about a start. The start happens nevertheless.
type StartNotes struct {
	Warnings    []SkippedStep `json:"warnings,omitempty"` // in the form of skipped steps, although these steps need not be skipped
	Unused      []string      `json:"unused,omitempty"`   // members of the body that are probably misspelled fields
	Blacklisted bool          `json:"blacklisted,omitempty"`
}

// StopResult is the answer to a stop: the cancelled messages, which will never be sent, and the client's usage.
type StopResult struct {
	IDs   []MessageID
	Usage Usage
}

// CancelTarget says which messages a cancellation is for. Exactly one member is set.
type CancelTarget struct {
	Phones    []string // messages to these recipients
	Reference string   // messages of runs with this reference
	All       bool     // all messages of the client
}

// CancelledMessage is one message that a cancellation cancelled.
type CancelledMessage struct {
	ID      MessageID
	Desired time.Time // the desired time, or the planned time if there is no desired time
}

// Resend asks to send messages again, all or none. The store makes a new message for each. The new message has the same
// origin, sequence, run, session, content and request.
type Resend struct {
	Messages    []ResendMessage // in the order of the call, each id once
	Day         Date            // today in the client's time zone; one call is counted on this day
	Now         time.Time
	Idempotency *Idempotency // nil: none; Answer gets the [ResendResult]
	// Unknown is true if a restore left each message unknown (see [RestoreResult]). A PENDING message then becomes
	// FAILED before it is sent again.
	Unknown  bool
	Campaign bool // this is the retry of a campaign: the new messages are put into the session's campaign queue, like the old messages
	Move     bool // each message must still be PENDING; otherwise the code is conflict
}

// ResendMessage is one message to send again, with its new times.
type ResendMessage struct {
	ID         MessageID
	Desired    time.Time // zero: none
	Due        time.Time
	ValidUntil time.Time
}

// ResendResult is the answer to a [Resend]: the new messages, in the order of the call, and the client's usage.
type ResendResult struct {
	IDs   []MessageID
	Usage Usage
}

// StepRef names a step of a run by its index in the run's Steps.
type StepRef struct {
	RunRef
	Step int
}

// StepContent is what Contents returns for a step.
type StepContent struct {
	Zone    string // zone of the run
	Content Content
	Window  *Window // when the message may leave; nil: at any time
}
