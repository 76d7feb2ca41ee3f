package puntuale

import "time"

// Limits of sequences, their contents and their timing. Text is counted in characters (runes) after rendering.
const (
	MaxSteps      = 50
	MaxText       = 4096
	MaxRawText    = 16_384 // before rendering, placeholders and fallbacks included
	MaxCaption    = 1024
	MaxField      = 4096
	MaxName       = 200
	MaxMediaName  = 255
	MaxURL        = 2048
	MaxJitter     = 86_400  // seconds
	MaxRequestIDs = 1000    // ids or phones in one request
	MaxRequest    = 1 << 20 // bytes of a call's body, which are kept with its messages
	MaxFields     = 1000    // fields that the steps and templates of one sequence name
	HorizonYears  = 5
)

// Sequence is an ordered list of steps. Each run of it has one recipient. Its parametric fields are exactly the fields
// that its steps name.
type Sequence struct {
	ID          SequenceID
	Name        string    // do not need to be unique
	Session     SessionID // 0: the client's default session, looked up at start
	IfRunning   IfRunning
	StopOnReply bool
	Purpose     Purpose // service or marketing
	Steps       []Step
	Created     time.Time
	Updated     time.Time
}

// SequenceFilter narrows and orders a list of sequences.
type SequenceFilter struct {
	Text   string // words that the name holds, compared as in [MessageFilter], or the id; "": all
	Newest bool   // by falling id, else by rising id
}

// Step is one future message: its content and its timing. Texts may hold {{field}} and {{field|fallback}}. The JSON
// form is both the wire's and what stores keep.
type Step struct {
	Text      string   `json:"text,omitempty"`
	Media     string   `json:"media,omitempty"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	Longitude *float64 `json:"longitude,omitempty"`
	Template  string   `json:"template,omitempty"`
	Timing    Timing   `json:"timing"`

	OnUncertain OnUncertain `json:"on_uncertain,omitempty"`

	Official *Approved `json:"-"` // the approved template, once the template's content replaced its name
}

// OnUncertain says what happens after an attempt without an answer, if the network does not recognize repeats.
type OnUncertain string

const (
	UncertainNever  OnUncertain = "never"  // the default: a delivery receipt decides, or the deadline
	UncertainResend OnUncertain = "resend" // it is sent once more after [ResendAfter] without a receipt; the recipient may see it twice
)

// Timing places a step in time: anchor and offset, then At, then Window, then Jitter.
type Timing struct {
	Anchor   string    `json:"anchor"` // AnchorStart ("" in a plan means it) or the name of a date field
	Offset   Offset    `json:"offset"`
	At       string    `json:"at,omitempty"` // "HH:MM", with offsets in days and longer units
	Window   *Window   `json:"window,omitempty"`
	Jitter   int       `json:"jitter,omitempty"` // seconds, 0 to MaxJitter
	IfPast   IfPast    `json:"if_past,omitempty"`
	ValidFor *Validity `json:"valid_for,omitempty"` // nil: 24 hours
}

// AnchorStart is the moment of the call.
const AnchorStart = "start"

// Unit of an offset. Days and longer are calendar arithmetic in the run's zone; hours and shorter are elapsed time.
type Unit string

const (
	Seconds Unit = "seconds"
	Minutes Unit = "minutes"
	Hours   Unit = "hours"
	Days    Unit = "days"
	Weeks   Unit = "weeks"
	Months  Unit = "months"
)

// Direction of an offset from its anchor.
type Direction string

const (
	Before Direction = "before"
	After  Direction = "after"
)

// Offset is a distance from the anchor. The zero value is no distance.
type Offset struct {
	Amount    int       `json:"amount"`
	Unit      Unit      `json:"unit,omitempty"`
	Direction Direction `json:"direction,omitempty"`
}

// Validity is how long after its planned moment a message may still leave.
type Validity struct {
	Amount int  `json:"amount"`
	Unit   Unit `json:"unit"`
}

// IfPast says what happens to a step whose moment is more than [PastGrace] ago.
type IfPast string

const (
	PastSkip   IfPast = "skip" // the default
	PastSend   IfPast = "send_now"
	PastReject IfPast = "reject"
)

// PastGrace is how old a moment may be that still counts as now.
const PastGrace = 5 * time.Minute

// FieldKind tells what a parametric field must hold, or what a contact's field holds.
type FieldKind string

const (
	FieldText   FieldKind = "text"
	FieldDate   FieldKind = "date"
	FieldMedia  FieldKind = "media"
	FieldNumber FieldKind = "number" // of contacts only
)

// Field is one parametric field of a sequence. A field without a fallback somewhere is Required.
type Field struct {
	Name     string
	Kind     FieldKind
	Required bool
}
