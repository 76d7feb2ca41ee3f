package puntuale

import (
	"fmt"
	"time"
)

// Run is one start of a sequence for one recipient: all its messages, scheduled in one transaction. Single and mass
// sends are runs of one step without a sequence. The texts are here and not in the messages, because message rows are
// written several times.
type Run struct {
	ID        RunID // given by the store
	Client    ClientID
	Sequence  SequenceID // 0: none
	Session   SessionID
	Phone     string // "+…", or a group id as given
	Origin    Origin
	Campaign  CampaignID // that fed it; 0: none
	Name      string     // of a single or mass send; "" for a sequence
	Reference string     // the caller's own name of what the run is about; "": none. At most [MaxReference] characters
	Zone      string     // IANA name the run was planned in
	Received  time.Time
	Request   []byte // the call's body, byte for byte

	ClientName   string // frozen at start
	SequenceName string

	Steps []FrozenStep // one for each message, in order
}

// FrozenStep is what a run keeps of one planned message. The JSON form is what stores keep.
type FrozenStep struct {
	Step    int     `json:"step"`
	Content Content `json:"content"`
	Window  *Window `json:"window,omitempty"`

	// Only for messages of a campaign, as in [PlannedMessage].
	Dated bool      `json:"dated,omitempty"`
	Limit time.Time `json:"limit,omitzero"`
}

// IfRunning says what a start does when the same sequence still has pending messages for the same recipient.
type IfRunning string

const (
	IfRunningAllow   IfRunning = "allow"   // a second run beside the first
	IfRunningSkip    IfRunning = "skip"    // answer the running ids, schedule nothing
	IfRunningRestart IfRunning = "restart" // stop and start in one transaction
	IfRunningReject  IfRunning = "reject"  // CodeConflict
)

// ParseIfRunning reads one of the four words; "" is allow.
func ParseIfRunning(word string) (IfRunning, error) {
	switch w := IfRunning(word); w {
	case "":
		return IfRunningAllow, nil
	case IfRunningAllow, IfRunningSkip, IfRunningRestart, IfRunningReject:
		return w, nil
	}
	return "", fmt.Errorf("%q is not one of allow, skip, restart, reject", word)
}

// Usage is a client's position against its daily cap after a call.
type Usage struct {
	Cap  int64 `json:"cap"`
	Used int64 `json:"used"`
}

// Remaining returns the calls that are left, never less than zero.
func (u Usage) Remaining() int64 { return max(0, u.Cap-u.Used) }

// UncountedCap is what a client without a cap reports as its cap; it is never refused.
const UncountedCap = 1_000_000

// StartRun is a request to store a run and its messages in one transaction with the client's usage and the call's
// idempotency record.
type StartRun struct {
	Run      Run
	Messages []PlannedMessage // in step order; without messages nothing is stored, but the call counts
	Skipped  []SkippedStep    // kept with the answer, so that a repeat of the call gives it again

	Day         Date // the client's present day, whose cap counts
	Now         time.Time
	IfRunning   IfRunning    // with a reference in Run, only runs that have it count as running; for a campaign all do
	Idempotency *Idempotency // nil: none; its Answer gets the [StartedRun], and returns its JSON form

	// Revision is the client revision at which the start's data was read. 0: the data was read for this call.
	Revision int64
}

// StartedRun is the durable answer to a [StartRun]. Its JSON form is kept for repeats of the call.
type StartedRun struct {
	IDs     []MessageID   `json:"ids"`
	Usage   Usage         `json:"usage"`
	Skipped []SkippedStep `json:"skipped,omitempty"`
}

// StopResult is the answer to a stop: the messages that will never be sent, and the client's usage.
type StopResult struct {
	IDs   []MessageID
	Usage Usage
}

// CancelTarget names the messages of a cancellation, by one of its members.
type CancelTarget struct {
	Phones    []string // to these recipients
	Reference string   // of runs with this reference of the caller
	All       bool     // all of the client's
}

// CancelledMessage is one message that a cancellation reached.
type CancelledMessage struct {
	ID      MessageID
	Desired time.Time // the desired moment, else the planned one
}

// Resend asks for messages to be sent again, all or none. Each gets a new message with its origin, sequence, run,
// session, content and request.
type Resend struct {
	Messages    []ResendMessage // in the order asked, each id once
	Day         Date            // the client's present day, whose cap counts one call
	Now         time.Time
	Idempotency *Idempotency // nil: none; its Answer gets the [ResendResult]
	Unknown     bool         // every message must be one that a restore left unknown (RestoreStore); it is closed as FAILED first
	Campaign    bool         // it is the retry of a campaign: the new messages wait behind others, as the old ones did
	Move        bool         // every message must still be PENDING, otherwise the call is a conflict
}

// ResendMessage is one message to send again, with its new moments.
type ResendMessage struct {
	ID         MessageID
	Desired    time.Time // zero: none
	Due        time.Time
	ValidUntil time.Time
}

// ResendResult is the answer: the new messages in the order asked, and the client's usage.
type ResendResult struct {
	IDs   []MessageID
	Usage Usage
}
