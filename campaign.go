package puntuale

import (
	"slices"
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
	MaxVariants       = 4  // texts of one campaign
	MaxHoldout        = 50 // percent of the recipients who get nothing
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
	Others    []Step            `json:"others,omitempty"`    // further variants of the message; Step is the first one
	Shares    []int             `json:"shares,omitempty"`    // share of the recipients of each variant, in percent; 100 in all; empty: there is only one
	Holdout   int               `json:"holdout,omitempty"`   // share of the recipients who get nothing, in percent
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
	Sequence   Sequence        `json:"sequence"`           // includes the texts of its templates
	Others     []Step          `json:"others,omitempty"`   // the variants but the first, which is the sequence's only step. See Joined
	Filled     []FrozenVariant `json:"variants,omitempty"` // the variants of the sequence's steps, as [Texts] yields them
	Official   []*Approved     `json:"official,omitempty"` // the approved template of each step; nil for one without
	Values     []ValueRule     `json:"values,omitempty"`   // how the values of each of these fit into its approved template; empty: unknown
	Purposes   []Purpose       `json:"purposes,omitempty"` // the purpose of each step; empty: every step has the draft's purpose
	ClientName string          `json:"client_name"`
	Zone       string          `json:"zone"`
	Closed     []Date          `json:"closed,omitempty"`     // the client's own holidays
	Columns    map[string]int  `json:"columns,omitempty"`    // the column of each field in the list, from 0
	PerMinute  int             `json:"per_minute,omitempty"` // recipients a minute; 0: as many as the session's pace allows
}

// FrozenVariant is a variant of a step of a campaign's sequence.
type FrozenVariant struct {
	Step     Step      `json:"step"`               // includes the text of its template
	Official *Approved `json:"official,omitempty"` // the approved template; nil: none
	Values   ValueRule `json:"values,omitempty"`   // how its values fit into the approved template
}

// CanarySize returns how many recipients go first. The others wait until these recipients' messages have ended.
func (d *CampaignDraft) CanarySize() int {
	if d.Canary == nil {
		return CanaryRecipients
	}
	return *d.Canary
}

// Variants returns the message in all its variants, or nil if the campaign uses a sequence.
func (d *CampaignDraft) Variants() []Step {
	if d.Step == nil {
		return nil
	}
	return append([]Step{*d.Step}, d.Others...)
}

// Texts returns the message in all its variants: as the campaign froze it, with the contents of its templates, or else, before
// the start, as the draft names it. It is nil if the campaign uses a sequence.
func (c *Campaign) Texts() []Step {
	all := c.Draft.Variants()
	if frozen := c.Frozen.Joined().Sequence.Steps; len(frozen) == len(all) {
		return frozen
	}
	return all
}

// VariantKey returns the name of a variant: A for variant 0, B for the next.
func VariantKey(variant int) string { return string(rune('A' + variant)) }

// VariantOf returns the number of a variant, from 0, or -1.
func VariantOf(key string) int {
	if len(key) != 1 || key[0] < 'A' || key[0] >= 'A'+MaxVariants {
		return -1
	}
	return int(key[0] - 'A')
}

// Joined returns the data with the variants as steps of the sequence, of which each recipient gets only one, and with the
// approved templates in the steps and in their variants.
func (f CampaignFrozen) Joined() CampaignFrozen {
	f.Sequence.Steps = slices.Concat(f.Sequence.Steps, f.Others)
	f.Others = nil
	filled := f.Filled
	for i := range f.Sequence.Steps {
		step := &f.Sequence.Steps[i]
		if i < len(f.Official) {
			step.Official = f.Official[i]
		}
		if i < len(f.Values) {
			step.Values = f.Values[i]
		}
		n := min(len(step.Variants), len(filled))
		step.Variants = slices.Clone(step.Variants)
		for v, x := range filled[:n] {
			x.Step.Official, x.Step.Values = x.Official, x.Values
			step.Variants[v].Filled = &x.Step
		}
		filled = filled[n:]
	}
	return f
}

// Apart does the opposite of Joined. It is the stored form: a server of a version without variants sends the first one.
func (f CampaignFrozen) Apart(d *CampaignDraft) CampaignFrozen {
	if n := len(f.Sequence.Steps); n > 1 && len(d.Shares) == n {
		f.Others, f.Sequence.Steps = f.Sequence.Steps[1:], f.Sequence.Steps[:1]
	}
	return f
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

// Codes that say why the server paused a campaign, or why a running campaign waits. Pages translate them.
const (
	CampaignByCanary   = "canary"
	CampaignByCredit   = "no_credit"
	CampaignByAccount  = "client_held"
	CampaignByNumber   = "number_restricted"
	CampaignByRestore  = "restored"
	CampaignByFailover = "failover"
	CampaignByRoom     = "portfolio" // the campaign runs, but waits: the network's limit has no room for more people now
	CampaignByBudget   = "budget"    // the campaign runs, but waits: the budget of the client's month is used up
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
	RefusedHeldOut     = "held_out"  // the campaign's holdout: the person gets nothing, so that others can be compared with them
)

// CampaignFeed is the progress of feeding.
type CampaignFeed struct {
	Cursor                int64     // the last recipient that was fed or refused; feeding continues after this recipient
	Next                  time.Time // when the next recipient's first message is due
	Waiting, Fed, Refused int
	HeldOut               int // recipients of the holdout, who are not among the refused ones
}

// Size returns the size of the list.
func (f CampaignFeed) Size() int { return f.Waiting + f.Fed + f.Refused + f.HeldOut }

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
	HeldOut    int               `json:"held_out,omitempty"` // recipients of the holdout
	Variants   []int             `json:"variants,omitempty"` // valid recipients of each variant; empty: there is only one
	Messages   int               `json:"messages"`
	First      time.Time         `json:"first,omitzero"` // when the first message leaves
	Last       time.Time         `json:"last,omitzero"`  // when the last message leaves, as the pace, the window and the network's limits allow
	Refused    []RefusedGroup    `json:"refused,omitempty"`
	Samples    []CampaignSample  `json:"samples,omitempty"`
	Longest    int               `json:"longest,omitempty"` // length of the longest text, in characters
	Limit      *CampaignLimit    `json:"limit,omitempty"`
	Cost       *CampaignCost     `json:"cost,omitempty"` // nil: the network charges nothing
	Warnings   []CampaignWarning `json:"warnings,omitempty"`
	Ways       []CampaignWay     `json:"ways,omitempty"` // only of an Official session
	Done       int               `json:"done,omitempty"` // while the check runs: how many recipients it has checked
}

// CampaignWay is how many messages of a campaign leave in one way.
type CampaignWay struct {
	Way      MessageWay `json:"way"`
	Reason   ReasonCode `json:"reason"`
	Messages int        `json:"messages"`
}

// RefusedGroup is how many recipients were refused for one reason.
type RefusedGroup struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// CampaignSample shows the messages that one recipient gets.
type CampaignSample struct {
	Line    int       `json:"line"`
	Written string    `json:"written,omitempty"` // the number as the list has it
	Phone   string    `json:"phone"`
	At      time.Time `json:"at"`
	Text    string    `json:"text"`
	Kind    string    `json:"kind,omitempty"`    // shortest or longest: of all texts; "": one of the first
	Variant string    `json:"variant,omitempty"` // key of the variant; "": there is only one
}

// Kinds of [CampaignSample].
const (
	SampleShortest = "shortest"
	SampleLongest  = "longest"
)

// CampaignWarning is a possible problem with a step. It does not prevent the start.
type CampaignWarning struct {
	Code string `json:"code"`
	Step int    `json:"step"` // number of the step, from 0
}

// WarnsNoOptOut warns that a marketing text does not say how to opt out.
const WarnsNoOptOut = "no_opt_out"

// WarnsNotShown warns that recipients get text instead of a list, a link button or a question.
const WarnsNotShown = "not_shown"

// CampaignLimit is a limit of the network or the session. This limit decides when a campaign ends.
type CampaignLimit struct {
	Code      string `json:"code"` // one of session_per_minute, session_per_day, cold_per_minute, cold_per_day, portfolio
	PerMinute int    `json:"per_minute,omitempty"`
	PerDay    int    `json:"per_day,omitempty"`
	Days      int    `json:"days,omitempty"`     // only if the limit is per day: the number of days on which messages leave
	Used      int    `json:"used,omitempty"`     // only of portfolio: people of the last 24 hours
	Reserved  int    `json:"reserved,omitempty"` // only of portfolio: people with planned messages, which go first
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

// CheckProgress is what a check found since it last stored its progress. In the last progress of a check, Over is true.
type CheckProgress struct {
	Alive   time.Time // stored time of the check's last progress
	Now     time.Time // the new value of Alive
	Changed []Recipient
	Check   CampaignCheck
	Over    bool // the check has ended: the campaign becomes ready
}

// FedCampaign is a campaign with facts about its session.
type FedCampaign struct {
	Campaign
	Online   bool
	Official bool // the session is Official: free text needs an open 24-hour window
	Link     Link // the link of the session; only its State, Condition and Limited are set
	// MarketingFrom is until when the client's marketing waits, as in [SendPermission].
	MarketingFrom time.Time
	Fault         error // why the campaign cannot be decoded; nil: it can
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

	Portfolio *Portfolio // the room that was counted before; if another chunk was fed since then, nothing is stored; nil: no limit
}

// FedRecipient is a recipient with the start of its run. A recipient with a Reason is refused, and has no start.
type FedRecipient struct {
	Recipient
	Start StartRun // only if Reason is ""
}
