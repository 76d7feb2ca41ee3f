package puntuale

import (
	"context"
	"time"
)

// Limits of campaigns.
const (
	MaxRecipients     = 1_000_000 // recipients of one list
	MaxInline         = 10_000    // recipients in one call
	MaxOpenCampaigns  = 200       // campaigns of one client that have not ended
	MaxCampaignRate   = 6000      // recipients a minute
	CampaignAhead     = 2000      // recipients of one session that may wait for their first attempt
	CampaignAheadTime = 10 * time.Minute
	CanaryRecipients  = 20
	CanaryWait        = 10 * time.Minute
)

// Campaign starts a sequence, or sends one message, to every recipient of a list. See docs/campaigns.md.
type Campaign struct {
	ID        CampaignID
	Client    ClientID
	Session   SessionID
	Sequence  SequenceID // 0: the campaign sends one message
	State     CampaignState
	Name      string
	Draft     CampaignDraft
	Frozen    CampaignFrozen // set when the campaign starts
	List      ListID         // 0: no list yet
	Checked   CampaignCheck
	Alive     time.Time // when the running check last stored its progress
	Reason    string    // the code that says why the campaign paused or failed
	CreatedBy UserID    // the user who created the campaign; 0: an API key did

	Created, Started, Paused, Resumed, Ended time.Time // zero: this has not happened yet

	Feed  CampaignFeed
	Final CampaignCounts // the counts when the campaign last ended
}

// CampaignDraft is what a person decides about a campaign. The store writes it as JSON.
type CampaignDraft struct {
	Purpose   string            `json:"purpose,omitempty"`
	Reference string            `json:"reference,omitempty"` // the caller's own name for the campaign's subject; the campaign's runs have the same reference
	Step      *Step             `json:"step,omitempty"`      // the one message, with placeholders or the name of a template; nil: the campaign uses a sequence
	Fields    map[string]string `json:"fields,omitempty"`    // fields of every recipient; a recipient's own field replaces the field of the same name
	PerMinute int               `json:"per_minute,omitempty"`
	Window    *Window           `json:"window,omitempty"`
	StartAt   time.Time         `json:"start_at,omitzero"`
	IfRunning IfRunning         `json:"if_running,omitempty"`
	Canary    *int              `json:"canary,omitempty"` // how many recipients go first; nil: CanaryRecipients
	Zone      string            `json:"zone,omitempty"`   // "": the client's zone
	Starts    ListID            `json:"starts,omitempty"` // the call that made the campaign starts it, with this list; 0: it does not, or a person edited the draft
}

// CampaignFrozen contains the data that a start copies, so that later changes of these data have no effect on the
// campaign. The store writes it as JSON.
type CampaignFrozen struct {
	Sequence   Sequence       `json:"sequence"`           // includes the texts of its templates
	Official   []*Approved    `json:"official,omitempty"` // the approved template of each step; nil for a step without one
	Purposes   []Purpose      `json:"purposes,omitempty"` // the purpose of each step; empty: every step has the draft's purpose
	ClientName string         `json:"client_name"`
	Zone       string         `json:"zone"`
	Closed     []Date         `json:"closed,omitempty"`     // the client's own holidays
	Columns    map[string]int `json:"columns,omitempty"`    // the column of each field in the list, from 0
	PerMinute  int            `json:"per_minute,omitempty"` // recipients a minute; 0: as many as the session's pace allows
}

// CanarySize returns how many recipients go first. The others wait until these recipients' messages have ended.
func (d *CampaignDraft) CanarySize() int {
	if d.Canary == nil {
		return CanaryRecipients
	}
	return *d.Canary
}

// CampaignState is the state of a campaign.
type CampaignState int8

// The database contains these numbers, so add a new state only at the end.
const (
	CampaignDrafted CampaignState = iota
	CampaignChecking
	CampaignReady
	CampaignRunning
	CampaignPaused
	CampaignResuming   // the server delays the messages by the length of the pause
	CampaignCancelling // the server cancels the messages
	CampaignDone
	CampaignCancelled
	CampaignFailed
)

var campaignStates = [...]string{"draft", "checking", "ready", "running", "paused", "resuming", "cancelling", "done", "cancelled", "failed"}

// String returns the state's name on the wire.
func (s CampaignState) String() string {
	if s < 0 || int(s) >= len(campaignStates) {
		return ""
	}
	return campaignStates[s]
}

// HoldsBack reports whether this state prevents the campaign's messages from leaving.
func (s CampaignState) HoldsBack() bool { return s >= CampaignPaused && s <= CampaignCancelling }

// Editable reports whether the campaign may still be changed in this state.
func (s CampaignState) Editable() bool { return s == CampaignDrafted || s == CampaignReady }

// Ended reports whether feeding is over in this state.
func (s CampaignState) Ended() bool { return s >= CampaignDone }

// Codes that say why the server paused a campaign. Pages translate them.
const (
	CampaignByCanary   = "canary"
	CampaignByCredit   = "no_credit"
	CampaignByAccount  = "client_held"
	CampaignByNumber   = "number_restricted"
	CampaignByRestore  = "restored"
	CampaignByFailover = "failover"
	CampaignNoSession  = "session_deleted"
	CampaignNoSequence = "sequence_deleted"
)

// Codes that say why a recipient is refused, in the order in which a check looks for them.
const (
	RefusedPhone       = "invalid_phone"
	RefusedDuplicate   = "duplicate"
	RefusedMissing     = "missing_field"
	RefusedField       = "bad_field"
	RefusedBlacklisted = "blacklisted"
	RefusedNoConsent   = "no_consent" // a marketing message to a person who gave no consent
	RefusedRunning     = "running"
	RefusedPast        = "past"
	RefusedWindow      = "no_window" // free text of an Official session to a person who did not write in the last 24 hours
	RefusedErased      = "erased"    // the person was erased after the list was stored
)

// CampaignFeed is the progress of feeding.
type CampaignFeed struct {
	Cursor                int64     // the last recipient that was fed or refused; feeding continues after this recipient
	Next                  time.Time // when the next recipient's first message is due
	Waiting, Fed, Refused int
}

// Size returns the size of the list.
func (f CampaignFeed) Size() int { return f.Waiting + f.Fed + f.Refused }

// CampaignCounts counts the messages of fed recipients by state. The store writes it as JSON.
type CampaignCounts struct {
	Pending     int `json:"pending"`
	Completed   int `json:"completed"`
	Failed      int `json:"failed"`
	Cancelled   int `json:"cancelled"`
	Blacklisted int `json:"blacklisted"`

	// Delivered and Read count the delivery receipts of completed messages.
	Delivered int `json:"-"`
	Read      int `json:"-"`
}

// Total is the number of messages.
func (c CampaignCounts) Total() int {
	return c.Pending + c.Completed + c.Failed + c.Cancelled + c.Blacklisted
}

// CampaignCheck is what a check found. The store writes it as JSON.
type CampaignCheck struct {
	Digest     string            `json:"digest,omitempty"` // hash of the list, the steps, the session and the settings; "" while the check runs
	Recipients int               `json:"recipients"`
	Valid      int               `json:"valid"`
	Messages   int               `json:"messages"`
	First      time.Time         `json:"first,omitzero"` // when the first message leaves
	Last       time.Time         `json:"last,omitzero"`  // when the last message leaves, as the pace, the window and the network's limits allow
	Refused    []RefusedGroup    `json:"refused,omitempty"`
	Samples    []CampaignSample  `json:"samples,omitempty"`
	Longest    int               `json:"longest,omitempty"` // length of the longest text, in characters
	Limit      *CampaignLimit    `json:"limit,omitempty"`
	Cost       *CampaignCost     `json:"cost,omitempty"` // nil: the network charges nothing
	Warnings   []CampaignWarning `json:"warnings,omitempty"`
	Done       int               `json:"done,omitempty"` // while the check runs: how many recipients it has checked
}

// RefusedGroup is how many recipients were refused for one reason.
type RefusedGroup struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// CampaignSample shows the messages that one recipient gets.
type CampaignSample struct {
	Line  int       `json:"line"`
	Phone string    `json:"phone"`
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
}

// CampaignWarning is a possible problem with a step. It does not prevent the start.
type CampaignWarning struct {
	Code string `json:"code"`
	Step int    `json:"step"` // number of the step, from 0
}

// WarnsNoOptOut warns that a marketing text does not say how to opt out.
const WarnsNoOptOut = "no_opt_out"

// CampaignLimit is a limit of the network or the session. This limit decides when a campaign ends.
type CampaignLimit struct {
	Code      string `json:"code"` // one of session_per_minute, session_per_day, cold_per_minute, cold_per_day, portfolio
	PerMinute int    `json:"per_minute,omitempty"`
	PerDay    int    `json:"per_day,omitempty"`
	Days      int    `json:"days,omitempty"` // only if the limit is per day: the number of days on which messages leave
}

// Recipient is one row of a list.
type Recipient struct {
	N      int64 // the row's number in the list, from 1
	Line   int   // the line in the uploaded file, from 1
	Phone  string
	Cells  []string // in the order of the list's columns; empty after an erasure
	State  RecipientState
	Reason string
	Value  string // the refused value; with RefusedField: the stored form of a [Reason], or a sentence from an earlier version
	Run    RunID  // only with RecipientFed
}

// Refused returns the reason of the refusal.
func (r *Recipient) Refused() Reason {
	if r.Reason == RefusedField {
		return ParseReason(r.Value)
	}
	return Quoted(r.Value)
}

// RecipientState says whether a recipient waits, was fed or was refused.
type RecipientState int8

// The database contains these numbers.
const (
	RecipientWaiting RecipientState = iota
	RecipientFed
	RecipientRefused
)

// String returns the state's name on the wire.
func (s RecipientState) String() string {
	switch s {
	case RecipientWaiting:
		return "waiting"
	case RecipientFed:
		return "fed"
	case RecipientRefused:
		return "refused"
	}
	return ""
}

// RecipientList is a list of recipients that is being uploaded, or is in use.
type RecipientList struct {
	ID       ListID
	Campaign CampaignID
	Columns  []string
	Mapping  string // says which column has which field
	Size     int
}

// RecipientFilter narrows a list of recipients.
type RecipientFilter struct {
	State  *RecipientState // nil: any state
	Reason string          // "": any reason
}

// CampaignChange changes a campaign's state. It is a compare-and-set: it fails if the present state is not one of From.
type CampaignChange struct {
	From   []CampaignState
	To     CampaignState
	Reason string
	By     Actor
	Now    time.Time
}

// CampaignStart changes a campaign from ready to running. A start counts as one call of the daily cap.
type CampaignStart struct {
	Digest  string // the stored check must have this digest
	Frozen  CampaignFrozen
	Session SessionID
	First   time.Time // when the first recipient's first message is due
	Day     Date
	By      Actor
	Now     time.Time
}

// CampaignStore stores a client's campaigns. Every method may return not_found, besides the codes that it names.
type CampaignStore interface {
	// CreateCampaign stores a new campaign, and gives it the list that it names. The argument o may be nil; its function
	// Answer gets the CampaignID. Codes: quota_reached beyond MaxOpenCampaigns; cap_reached if the call also starts the
	// campaign, and the cap of this day allows no start.
	CreateCampaign(ctx context.Context, c Campaign, day Date, o *Idempotency) (CampaignID, error)
	// UpdateCampaign replaces name, sequence, session and draft, and deletes the check. Codes: conflict (the campaign
	// is not editable).
	UpdateCampaign(ctx context.Context, c Campaign) error
	Campaign(ctx context.Context, id CampaignID) (Campaign, error)
	Campaigns(ctx context.Context, p Page) ([]Campaign, string, error) // newest first; code invalid: the cursor is wrong
	// CampaignCounts counts the messages of fed recipients. It reads only an index. With receipts, it also reads the
	// delivery receipts of each message, which takes about a second for 1,000,000 messages.
	CampaignCounts(ctx context.Context, id CampaignID, receipts bool) (CampaignCounts, error)
	// ChangeCampaign changes a campaign's state, and notes the change in the audit log. If the new state holds messages
	// back, no message of the campaign is claimed after ChangeCampaign returns. Codes: conflict (the state is not one
	// of From).
	ChangeCampaign(ctx context.Context, id CampaignID, c CampaignChange) error
	// StartCampaign makes a ready campaign running, notes the start in the audit log and counts the call, in one
	// transaction. If the campaign already started with the same digest, nothing changes and no call is counted.
	// Codes: conflict, cap_reached.
	StartCampaign(ctx context.Context, id CampaignID, s CampaignStart) (Usage, error)
}

// RecipientStore stores the recipients of campaigns, in lists. Codes: not_found.
type RecipientStore interface {
	// NewList begins a list that belongs to no campaign yet. If no campaign uses a list, the store deletes the list one
	// hour after the last row was added.
	NewList(ctx context.Context, l RecipientList, now time.Time) (ListID, error)
	// AddRecipients appends at most MaxInline rows in one transaction. It reads only the phone, line and cells of
	// each row. It also stores the columns and the mapping of l. l.Size must be the size of the stored list;
	// otherwise nothing is stored. If the list is in use, AddRecipients deletes the campaign's check. Codes: invalid
	// beyond MaxRecipients; conflict (wrong size, the campaign now uses another list, or the campaign is not editable).
	AddRecipients(ctx context.Context, l RecipientList, rows []Recipient, now time.Time) error
	// UseList makes a new list the current list of a campaign, and deletes the check. The campaign must still have the
	// list and the number of recipients that the caller read. Codes: conflict (it has not, or is not editable).
	UseList(ctx context.Context, was Campaign, list ListID) error
	RecipientList(ctx context.Context, list ListID) (RecipientList, error)
	// Recipients lists at most limit rows after a cursor, in the order of the list.
	Recipients(ctx context.Context, list ListID, f RecipientFilter, after int64, limit int) ([]Recipient, error)
}

// CheckStore has the methods that the check of a campaign, and the retry of failed messages, use.
type CheckStore interface {
	// ChangeCheck stores what a running check has found so far: the rows whose state or reason changed. The call also
	// shows that the check is alive. The time at which a check began identifies the check. Codes: conflict if another
	// check replaced this check.
	ChangeCheck(ctx context.Context, id CampaignID, c CheckProgress) error
	// FailedOfCampaign lists failed messages, sorted by id. It begins with the first id that is larger than the
	// argument after, and limit is how many it lists at most. It includes messages with an uncertain outcome only if
	// uncertain is true.
	FailedOfCampaign(ctx context.Context, id CampaignID, uncertain bool, after MessageID, limit int) ([]MessageID, error)
	// Running returns which of the given phones have pending messages of the sequence.
	Running(ctx context.Context, sequence SequenceID, phones []string) (map[string]bool, error)
}

// CheckProgress is what a check found since it last stored its progress. In the last progress of a check, Over is true.
type CheckProgress struct {
	Alive   time.Time // stored time of the check's last progress
	Now     time.Time // the new value of Alive
	Changed []Recipient
	Check   CampaignCheck
	Over    bool // the check has ended: the campaign becomes ready
}

// CampaignFeeder has the methods that feed campaigns. They work for all tenants.
type CampaignFeeder interface {
	// FedCampaigns returns the campaigns that are running, resuming or being cancelled, if the node owns their
	// sessions.
	FedCampaigns(ctx context.Context, node NodeID) ([]FedCampaign, error)
	// CountAhead counts the session's recipients whose first message was not attempted yet, and is due at or before the
	// time in the argument end. It stops counting at CampaignAhead.
	CountAhead(ctx context.Context, session SessionID, end time.Time) (int, error)
	// Feed starts the runs of a chunk in one transaction, under the node's lease. It stores nothing and returns false
	// if the campaign is not running, or if the campaign's cursor has moved since the chunk was read. It leaves out
	// recipients that changed since then. [ErrFenced]: the lease is gone.
	Feed(ctx context.Context, node NodeID, c FeedChunk) (bool, error)
	// Canary looks at the first step's message to each fed recipient, and counts these messages by state.
	Canary(ctx context.Context, client ClientID, id CampaignID) (CampaignCounts, error)
	// MoveChunk delays messages and their deadlines by the time for which the campaign's pause held them. It delays only
	// the deadline of a message whose due time comes from a date field. It does the same for a message that a person sent
	// again during the pause. MoveChunk begins after the given cursor, changes the messages of a limited number of
	// recipients, and returns the next cursor. After the last recipient, it sets the campaign to running. The result done
	// is true after this, and also if the campaign is not in the resumption that began at the time resumed.
	MoveChunk(ctx context.Context, node NodeID, client ClientID, id CampaignID, resumed time.Time, after int64, now time.Time) (next int64, done bool, err error)
	// CancelChunk cancels a limited number of messages. When no message is left, it makes the campaign cancelled. The
	// result done is true after this, and also if the campaign is not being cancelled any more.
	CancelChunk(ctx context.Context, node NodeID, client ClientID, id CampaignID, now time.Time) (done bool, err error)
	// FinishCampaign ends a running campaign if every recipient was fed or refused, and every message has ended or is
	// uncertain.
	FinishCampaign(ctx context.Context, node NodeID, client ClientID, id CampaignID, now time.Time) (done bool, err error)
}

// FedCampaign is a campaign with facts about its session.
type FedCampaign struct {
	Campaign
	Online   bool
	Official bool // the session is Official: free text needs an open 24-hour window
	Link     Link // the link of the session; only its State, Condition and Limited are set
}

// FeedChunk contains the recipients that one transaction feeds.
type FeedChunk struct {
	Client   ClientID
	Campaign CampaignID
	List     ListID
	From, To CampaignFeed // the progress before and after this chunk; only Place and Next are set
	Day      Date
	Now      time.Time
	Rows     []FedRecipient // in the order of the list
}

// FedRecipient is a recipient with the start of its run. A recipient with a Reason is refused, and has no start.
type FedRecipient struct {
	Recipient
	Start StartRun // only if Reason is ""
}
