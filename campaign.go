package puntuale

import (
	"context"
	"time"
)

// Limits of campaigns.
const (
	MaxRecipients     = 1_000_000 // of one list
	MaxInline         = 10_000    // recipients in one call
	MaxOpenCampaigns  = 200       // campaigns of one client that have not ended
	MaxCampaignRate   = 6000      // recipients a minute
	CampaignAhead     = 2000      // how many recipients of a session may wait for their first attempt
	CampaignAheadTime = 10 * time.Minute
	CanaryRecipients  = 20
	CanaryWait        = 10 * time.Minute
)

// Campaign starts a sequence, or sends one message, to every recipient of a list. See docs/campaigns.md.
type Campaign struct {
	ID       CampaignID
	Client   ClientID
	Session  SessionID
	Sequence SequenceID // 0: one message
	State    CampaignState
	Name     string
	Draft    CampaignDraft
	Frozen   CampaignFrozen // set by the start
	List     ListID         // 0: no recipients yet
	Checked  CampaignCheck
	Alive    time.Time // when the running check last stored its progress
	Reason   string    // why it paused or failed; a code
	By       LoginID   // 0: a key

	Created, Started, Paused, Resumed, Ended time.Time // zero: not yet

	Feed  CampaignFeed
	Final CampaignCounts // the counts when the campaign last ended
}

// CampaignDraft is what a person decides about a campaign. The JSON form is what stores keep.
type CampaignDraft struct {
	Purpose   string            `json:"purpose,omitempty"`
	Reference string            `json:"reference,omitempty"` // the caller's own name of the campaign, which its runs have
	Step      *Step             `json:"step,omitempty"`      // of one message, with placeholders or the name of a template; nil: the sequence
	Fields    map[string]string `json:"fields,omitempty"`    // the same for every recipient; a recipient's own go first
	PerMinute int               `json:"per_minute,omitempty"`
	Window    *Window           `json:"window,omitempty"`
	StartAt   time.Time         `json:"start_at,omitzero"`
	IfRunning IfRunning         `json:"if_running,omitempty"`
	Canary    *int              `json:"canary,omitempty"` // recipients; nil: CanaryRecipients
	Zone      string            `json:"zone,omitempty"`   // "" for the client's
}

// CampaignFrozen is what a start freezes: later changes do not reach the campaign. The JSON form is what stores keep.
type CampaignFrozen struct {
	Sequence   Sequence       `json:"sequence"`           // with the texts of its templates
	Official   []*Approved    `json:"official,omitempty"` // the approved template of each step, nil for none
	Purposes   []Purpose      `json:"purposes,omitempty"` // the purpose of each step; none: the draft's purpose
	ClientName string         `json:"client_name"`
	Zone       string         `json:"zone"`
	Closed     []Date         `json:"closed,omitempty"`     // the client's own holidays
	Columns    map[string]int `json:"columns,omitempty"`    // the column of each field in the list, from 0
	PerMinute  int            `json:"per_minute,omitempty"` // 0: as many as the session takes
}

// CanarySize is how many recipients go first.
func (d *CampaignDraft) CanarySize() int {
	if d.Canary == nil {
		return CanaryRecipients
	}
	return *d.Canary
}

// CampaignState is the state of a campaign.
type CampaignState int8

// Stores keep these numbers, so new states come last.
const (
	CampaignDrafted CampaignState = iota
	CampaignChecking
	CampaignReady
	CampaignRunning
	CampaignPaused
	CampaignResuming   // the moments of its messages are moved
	CampaignCancelling // its messages are cancelled
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

// Holds reports whether no message of the campaign may leave in this state.
func (s CampaignState) Holds() bool { return s >= CampaignPaused && s <= CampaignCancelling }

// Editable reports whether the campaign may still be changed in this state.
func (s CampaignState) Editable() bool { return s == CampaignDrafted || s == CampaignReady }

// Ended reports whether feeding is over in this state.
func (s CampaignState) Ended() bool { return s >= CampaignDone }

// Why a campaign pauses by itself. They are codes: pages say them in words.
const (
	CampaignByCanary   = "canary"
	CampaignByCredit   = "no_credit"
	CampaignByStanding = "client_held"
	CampaignByNumber   = "number_restricted"
	CampaignByRestore  = "restored"
	CampaignByFailover = "failover"
	CampaignNoSession  = "session_deleted"
	CampaignNoSequence = "sequence_deleted"
)

// Why a recipient is refused, in the order in which a check looks.
const (
	RefusedPhone       = "invalid_phone"
	RefusedDuplicate   = "duplicate"
	RefusedMissing     = "missing_field"
	RefusedField       = "bad_field"
	RefusedBlacklisted = "blacklisted"
	RefusedNoConsent   = "no_consent" // marketing that the person did not agree to
	RefusedRunning     = "running"
	RefusedPast        = "past"
	RefusedWindow      = "no_window" // free text of an Official session to a person who did not write lately
	RefusedErased      = "erased"    // only while feeding, never in a check
)

// CampaignFeed is the progress of feeding. Waiting + Fed + Refused is the size of the list at every moment.
type CampaignFeed struct {
	Place                 int64     // the cursor: the last recipient that was fed or refused
	Next                  time.Time // the moment of the next recipient
	Waiting, Fed, Refused int
}

// CampaignCounts counts the messages of fed recipients by state. The JSON form is what stores keep.
type CampaignCounts struct {
	Pending     int `json:"pending"`
	Completed   int `json:"completed"`
	Failed      int `json:"failed"`
	Cancelled   int `json:"cancelled"`
	Blacklisted int `json:"blacklisted"`

	// These count the delivery receipts of the completed messages.
	Delivered int `json:"-"`
	Read      int `json:"-"`
}

// Total is the number of messages.
func (c CampaignCounts) Total() int {
	return c.Pending + c.Completed + c.Failed + c.Cancelled + c.Blacklisted
}

// CampaignCheck is what a check found. The JSON form is what stores keep.
type CampaignCheck struct {
	Digest     string            `json:"digest,omitempty"` // the hash of the list, the steps, the session and the settings; "" while the check runs
	Recipients int               `json:"recipients"`
	Valid      int               `json:"valid"`
	Messages   int               `json:"messages"`
	First      time.Time         `json:"first,omitzero"` // when the first message leaves
	Last       time.Time         `json:"last,omitzero"`  // when the last message leaves, by the pace, the window and the network's limits
	Refused    []RefusedGroup    `json:"refused,omitempty"`
	Samples    []CampaignSample  `json:"samples,omitempty"`
	Longest    int               `json:"longest,omitempty"` // characters of the longest text
	Limit      *CampaignLimit    `json:"limit,omitempty"`
	Cost       *CampaignCost     `json:"cost,omitempty"` // nil: the network takes nothing
	Warnings   []CampaignWarning `json:"warnings,omitempty"`
	Done       int               `json:"done,omitempty"` // while it runs: recipients checked so far
}

// RefusedGroup is how many recipients were refused for one reason.
type RefusedGroup struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// CampaignSample is what one recipient gets.
type CampaignSample struct {
	Line  int       `json:"line"`
	Phone string    `json:"phone"`
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
}

// CampaignWarning is a possible problem with a step. It does not prevent the start.
type CampaignWarning struct {
	Code string `json:"code"`
	Step int    `json:"step"` // from 0
}

// WarnsNoOptOut: a marketing text does not say how to opt out.
const WarnsNoOptOut = "no_opt_out"

// CampaignLimit is a limit of the network, or of the session, that decides when a campaign ends.
type CampaignLimit struct {
	Code      string `json:"code"` // session_per_minute, session_per_day, cold_per_minute, cold_per_day, portfolio
	PerMinute int    `json:"per_minute,omitempty"`
	PerDay    int    `json:"per_day,omitempty"`
	Days      int    `json:"days,omitempty"` // the number of days on which messages leave, with a limit per day
}

// Recipient is one row of a list.
type Recipient struct {
	N      int64 // its place in the list, from 1
	Line   int   // of the file, from 1
	Phone  string
	Cells  []string // in the order of the list's columns; empty after an erasure
	State  RecipientState
	Reason string
	Value  string // the refused value; with RefusedField the stored form of a [Reason], or a sentence of an earlier version
	Run    RunID  // with RecipientFed
}

// Refused returns the number of refused recipients.
func (r *Recipient) Refused() Reason {
	if r.Reason == RefusedField {
		return ParseReason(r.Value)
	}
	return Quoted(r.Value)
}

// RecipientState is what became of a recipient.
type RecipientState int8

// Stores keep these numbers.
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
	Mapping  string // which column is which field
	Size     int
}

// RecipientFilter narrows a list of recipients.
type RecipientFilter struct {
	State  *RecipientState // nil: any
	Reason string          // "": any
}

// CampaignChange moves a campaign from one state to another. It is a compare-and-set.
type CampaignChange struct {
	From   []CampaignState
	To     CampaignState
	Reason string
	By     Actor
	Now    time.Time
}

// CampaignStart is the change from ready to running. It counts one call of the day's cap.
type CampaignStart struct {
	Digest  string // the stored check must have this digest
	Frozen  CampaignFrozen
	Session SessionID
	First   time.Time // the moment of the first recipient
	Day     Date
	By      Actor
	Now     time.Time
}

// CampaignStore keeps a client's campaigns. Codes: not_found, and the codes that a method names.
type CampaignStore interface {
	// CreateCampaign; o may be nil. Its Answer gets the CampaignID. Codes: quota_reached beyond MaxOpenCampaigns.
	CreateCampaign(ctx context.Context, c Campaign, o *Idempotency) (CampaignID, error)
	// UpdateCampaign replaces name, sequence, session and draft, and drops the check. Codes: conflict unless it is editable.
	UpdateCampaign(ctx context.Context, c Campaign) error
	Campaign(ctx context.Context, id CampaignID) (Campaign, error)
	Campaigns(ctx context.Context, p Page) ([]Campaign, string, error) // newest first; invalid: the cursor
	// CampaignCounts counts the messages of fed recipients. It reads only an index. With receipts, it also reads the receipts of each
	// message: that takes about a second for 1,000,000 messages.
	CampaignCounts(ctx context.Context, id CampaignID, receipts bool) (CampaignCounts, error)
	// ChangeCampaign moves a campaign to another state, and notes it in the audit log. If the new state holds messages
	// back, then no message of the campaign is claimed after the return. Codes: conflict unless the state is one of
	// From.
	ChangeCampaign(ctx context.Context, id CampaignID, c CampaignChange) error
	// StartCampaign moves a ready campaign to running, notes it in the audit log and counts the call, in one transaction. A campaign that
	// started with the same digest stays as it is, and no call is counted. Codes: conflict, cap_reached.
	StartCampaign(ctx context.Context, id CampaignID, s CampaignStart) (Usage, error)
}

// RecipientStore keeps the recipients of campaigns, by lists. Codes: not_found.
type RecipientStore interface {
	// NewList begins a list of an editable campaign. A list that no campaign uses within an hour of its last row is removed.
	NewList(ctx context.Context, l RecipientList, now time.Time) (ListID, error)
	// AddRecipients appends rows in one transaction: at most MaxInline. It reads only the phone, line and cells of each
	// row. The list gets the columns and the mapping of l. If its size differs from l's, nothing is stored. Codes:
	// invalid beyond MaxRecipients; conflict (another size; the list is in use and its campaign is not editable).
	// Appending to a list in use drops the campaign's check.
	AddRecipients(ctx context.Context, l RecipientList, rows []Recipient, now time.Time) error
	// UseList makes the list its campaign's current one, and drops the check. Codes: conflict unless the campaign is editable.
	UseList(ctx context.Context, id CampaignID, list ListID) error
	RecipientList(ctx context.Context, list ListID) (RecipientList, error)
	// Recipients lists rows after a cursor, in list order, at most limit.
	Recipients(ctx context.Context, list ListID, f RecipientFilter, after int64, limit int) ([]Recipient, error)
}

// CheckStore is the part of the store that a campaign's check and its retry use.
type CheckStore interface {
	// ChangeCheck stores what a running check has found so far: the rows whose state or reason changed. It shows that
	// the check is alive. Codes: conflict when another check replaced this one. The moment of its begin identifies a
	// check.
	ChangeCheck(ctx context.Context, id CampaignID, c CheckProgress) error
	// FailedOfCampaign lists failed messages after an id, by id. It includes messages with an uncertain outcome only if uncertain is true.
	FailedOfCampaign(ctx context.Context, id CampaignID, uncertain bool, after MessageID, limit int) ([]MessageID, error)
	// Running returns which of the phones have pending messages of the sequence.
	Running(ctx context.Context, sequence SequenceID, phones []string) (map[string]bool, error)
}

// CheckProgress is a part of a check, or its end.
type CheckProgress struct {
	Alive   time.Time // the moment of the check's last progress
	Now     time.Time // becomes Alive
	Changed []Recipient
	Check   CampaignCheck
	Over    bool // the campaign becomes ready
}

// CampaignFeeder is the part of the store that feeds campaigns, across tenants.
type CampaignFeeder interface {
	// FedCampaigns returns the campaigns of the node's sessions that run, resume or are being cancelled.
	FedCampaigns(ctx context.Context, node NodeID) ([]FedCampaign, error)
	// Ahead counts the session's recipients whose first message is due by the moment and has had no attempt, at most CampaignAhead.
	Ahead(ctx context.Context, session SessionID, by time.Time) (int, error)
	// Feed starts the runs of a chunk in one transaction, under the node's lease. It stores nothing and returns false unless the campaign
	// runs and its cursor is still where the chunk was read. It leaves out recipients that changed since. [ErrFenced]: the lease is gone.
	Feed(ctx context.Context, node NodeID, c FeedChunk) (bool, error)
	// Canary counts the first messages of all fed recipients of a campaign, by their state.
	Canary(ctx context.Context, client ClientID, id CampaignID) (CampaignCounts, error)
	// MoveChunk moves the messages of some recipients after a cursor by the length of the pause, and returns the next cursor. At the end it
	// returns done, and the campaign runs.
	MoveChunk(ctx context.Context, node NodeID, client ClientID, id CampaignID, after int64, now time.Time) (next int64, done bool, err error)
	// CancelChunk cancels some messages, and reports whether none is left. Then the campaign is cancelled.
	CancelChunk(ctx context.Context, node NodeID, client ClientID, id CampaignID, now time.Time) (done bool, err error)
	// FinishCampaign ends a running campaign if every recipient was fed or refused, and every message has ended or is
	// uncertain.
	FinishCampaign(ctx context.Context, node NodeID, client ClientID, id CampaignID, now time.Time) (done bool, err error)
}

// FedCampaign is a campaign with the state of its session.
type FedCampaign struct {
	Campaign
	Online   bool
	Official bool // free text needs an open window
	Link     Link // of its session: only State, Condition and Limited
}

// FeedChunk is what one transaction feeds.
type FeedChunk struct {
	Client   ClientID
	Campaign CampaignID
	List     ListID
	From, To CampaignFeed // only Place and Next
	Day      Date
	Now      time.Time
	Rows     []FedRecipient // in the order of the list
}

// FedRecipient is a recipient with its run, or the reason why it is refused.
type FedRecipient struct {
	Recipient
	Start StartRun // without a reason
}
