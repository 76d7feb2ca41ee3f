package puntuale

import (
	"strings"
	"time"
)

// ResultMarks says how a message is counted: a bit for each count. A message that was moved or sent again counts once,
// together with the messages that took its place. The database contains the bits.
type ResultMarks int

const (
	ResultPlanned   ResultMarks = 1 << iota // the person was meant to get it
	ResultSent                              // it left
	ResultDelivered                         // a receipt says that it is on the person's device
	ResultRead
	ResultAnswered  // the person wrote within [ResultAnswerTime], and no later message explains that better
	ResultOptedOut  // the person withdrew consent within this time
	ResultFailed    // the network or this server gave it up
	ResultSkipped   // the blacklist or a missing consent forbade it
	ResultCancelled // it was taken back
	ResultClicked   // the person followed a tracked link
)

// ResultAnswerTime is how long after a message a reply or an opt-out counts for it.
const ResultAnswerTime = 72 * time.Hour

// resultWords are the names of the marks on the wire, in the order of their bits.
var resultWords = []string{"planned", "sent", "delivered", "read", "answered", "opted_out", "failed", "skipped", "cancelled", "clicked"}

// ParseResultMarks reads names of marks, separated by commas. It returns the first name that it does not know, or "".
func ParseResultMarks(text string) (marks ResultMarks, unknown string) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		found := false
		for i, word := range resultWords {
			if word == name {
				marks, found = marks|1<<i, true
			}
		}
		if !found {
			return 0, name
		}
	}
	return marks, ""
}

// String returns the names of the marks, separated by commas.
func (m ResultMarks) String() string {
	var all []string
	for i, word := range resultWords {
		if m&(1<<i) != 0 {
			all = append(all, word)
		}
	}
	return strings.Join(all, ",")
}

// Untold returns the marks of m of which nobody knows whether a message has them, because its network tells only what is in
// told; see [ResultMessage].
func (m ResultMarks) Untold(told ResultMarks) ResultMarks {
	if told&ResultAnswered != 0 { // who can write can also withdraw consent
		told |= ResultOptedOut
	}
	return m & (ResultDelivered | ResultRead | ResultAnswered | ResultOptedOut | ResultClicked) &^ told
}

// ResultGroup is by what results are counted.
type ResultGroup string

const (
	ResultBySequence ResultGroup = "sequence"
	ResultByStep     ResultGroup = "step" // of one sequence, by the ids of its steps
	ResultByCampaign ResultGroup = "campaign"
	ResultByRule     ResultGroup = "rule"
	ResultByTemplate ResultGroup = "template"
	ResultBySession  ResultGroup = "session"
	ResultByDay      ResultGroup = "day"
	ResultByClient   ResultGroup = "client"  // only a partner's
	ResultByVariant  ResultGroup = "variant" // of one campaign, or of one step of a sequence, by the keys of its variants
)

// ResultGroups contains every group that a client may ask for.
var ResultGroups = []ResultGroup{ResultBySequence, ResultByStep, ResultByCampaign, ResultByRule, ResultByTemplate, ResultBySession, ResultByDay, ResultByVariant}

// ResultFilter chooses the messages of a report. A zero member chooses all.
type ResultFilter struct {
	By       ResultGroup
	Start    Date // first day on which messages were due, in the zone in which they were planned
	End      Date // last such day
	Sequence SequenceID
	Step     *int // id of a step, or number of a variant of the campaign; nil: all
	Campaign CampaignID
	Rule     AutomationID
	Template string
	Session  SessionID
	None     []ResultGroup // only messages that belong to no sequence, campaign, rule, template or session
	Variant  int           // of the step, from 1
	Hours    bool          // also counts when messages were read
}

// ResultCounts contains the counts of some messages.
type ResultCounts struct {
	Planned, Sent, Delivered, Read, Answered, OptedOut, Failed, Skipped, Cancelled, Clicked int64

	// How many of the messages that left went through a session whose network tells when messages are delivered or read,
	// and what people reply. 0, although messages left: nobody can know.
	TellDelivered, TellRead, TellAnswered int64

	TellClicked int64 // how many of the messages that left belong to what has tracked links; 0: no link is tracked
}

// Pending returns how many messages have not ended.
func (c ResultCounts) Pending() int64 {
	return max(0, c.Planned-c.Sent-c.Failed-c.Skipped-c.Cancelled)
}

// Tells returns how many of the messages that left can have the mark: the others went through networks that do not tell.
func (c ResultCounts) Tells(mark ResultMarks) int64 {
	switch mark {
	case ResultDelivered:
		return c.TellDelivered
	case ResultRead:
		return c.TellRead
	case ResultAnswered, ResultOptedOut:
		return c.TellAnswered
	case ResultClicked:
		return c.TellClicked
	default:
		return c.Sent
	}
}

// Told reports whether a count says something: nothing left, or a network tells about some of what left. Clicks say
// something only if some of what left has tracked links.
func (c ResultCounts) Told(mark ResultMarks) bool {
	return c.Sent == 0 && mark != ResultClicked || c.Tells(mark) > 0
}

// Of returns one of the counts. The marks must be a single bit.
func (c ResultCounts) Of(mark ResultMarks) int64 {
	return map[ResultMarks]int64{
		ResultPlanned: c.Planned, ResultSent: c.Sent, ResultDelivered: c.Delivered, ResultRead: c.Read, ResultAnswered: c.Answered,
		ResultOptedOut: c.OptedOut, ResultFailed: c.Failed, ResultSkipped: c.Skipped, ResultCancelled: c.Cancelled, ResultClicked: c.Clicked,
	}[mark]
}

// BookingResults counts the bookings whose date is in the period, by what became of them.
type BookingResults struct{ Open, Confirmed, Cancelled, Arrived, NoShow int64 }

// ResultRow is one row of a report.
type ResultRow struct {
	Key  string // an id, a template's name, or a day as YYYY-MM-DD; "0": what belongs to none
	Name string // what people call it; "": it has no name
	ResultCounts
	Buttons  map[string]int64 // how many people pressed a button, by its label
	Reasons  map[string]int64 // why messages failed or were skipped, by the code of the reason
	Bookings *BookingResults  // nil: the report is not about bookings
}

// ResultReport is a report.
type ResultReport struct {
	All      []ResultRow
	Total    ResultRow    // of the whole period and filter
	Hours    [7][24]int64 // when messages were read: by day since Monday, and hour, in the zone in which they were planned
	AsOf     time.Time    // what changed before this moment is counted
	Counting bool         // the client's messages are being counted for the first time, or again

	// Only of a report by variant:
	HeldOut     int // people of the campaign's holdout
	Comparisons []ResultComparison
}

// ResultComparison compares the two variants with the largest shares of a count.
type ResultComparison struct {
	Mark       ResultMarks
	Best, Next string // keys of the variants; Best has the larger share
	Chance     bool   // the difference may be chance
	Few        bool   // fewer than five people did it: nothing can be said yet
	More       int64  // about how many more messages would show whether it is, for all variants together; 0: more messages would hardly show a difference
}

// ResultMessage is one message behind a count.
type ResultMessage struct {
	ID    MessageID
	Day   Date // when it was due
	Marks ResultMarks
	Told  ResultMarks // which of delivered, read and answered its network tells; clicked: links are tracked

	Sequence SequenceID // 0: none
	Step     int        // the id of the step, if there is a sequence
	Campaign CampaignID // 0: none
	Variant  int        // of the step or of the campaign, from 1; 0: it has none
}

// ResultMessages chooses the messages behind a count.
type ResultMessages struct {
	ResultFilter
	Is, Not ResultMarks // marks that the messages have, and marks that they do not have
	Reason  string      // code of the reason why they failed or were skipped; "": any
	Button  string      // label of a pressed button; "": any
}
