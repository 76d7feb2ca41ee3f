package puntuale

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of sequences, contents and timing. Text is counted in characters (runes) after rendering.
const (
	MaxSteps      = 50
	MaxText       = 4096
	MaxRawText    = 16_384 // characters before rendering, including placeholders and fallbacks
	MaxCaption    = 1024
	MaxField      = 4096
	MaxName       = 200
	MaxMediaName  = 255
	MaxURL        = 2048
	MaxJitter     = 86_400  // seconds
	MaxRequestIDs = 1000    // ids or phones in one call
	MaxRequest    = 1 << 20 // bytes of a call's body, which is stored with the call's messages
	MaxFields     = 1000    // different fields in the steps and templates of one sequence
	HorizonYears  = 5

	RestorableFor = 24 * time.Hour // a deleted sequence can be restored
)

// Sequence is an ordered list of steps. Each run of a sequence has one recipient. The fields that a call must or may
// give are exactly the fields that the steps name.
type Sequence struct {
	ID          SequenceID
	Name        string    // several sequences may have the same name
	Session     SessionID // 0: the client's default session when the run starts
	IfRunning   IfRunning
	StopOnReply bool
	Purpose     Purpose // service or marketing
	Booking     string  // name of the main date field of a sequence for bookings; "": an ordinary sequence
	LastStep    int     // the largest number that a step ever had as its id
	TrackLinks  TrackLinks
	Steps       []Step
	Created     time.Time
	Updated     time.Time
}

// TrackLinks says whether the addresses in the texts of a sequence become tracked links. The database contains the numbers.
type TrackLinks int8

const (
	TrackAsClient TrackLinks = 0 // as the client's setting says
	TrackAlways   TrackLinks = 1
	TrackNever    TrackLinks = 2
)

// TrackLinksOf returns the value that stands for a choice; nil: the client's setting.
func TrackLinksOf(on *bool) TrackLinks {
	switch {
	case on == nil:
		return TrackAsClient
	case *on:
		return TrackAlways
	}
	return TrackNever
}

// Choice returns the choice that the value stands for; nil: the client's setting.
func (t TrackLinks) Choice() *bool {
	if t == TrackAsClient {
		return nil
	}
	return new(t == TrackAlways)
}

// SequenceFilter chooses and sorts sequences.
type SequenceFilter struct {
	Text   string // words of the name, compared as in [MessageFilter], or the id; "": all
	Newest bool   // largest id first; false: smallest id first
}

// Step is one future message: its content and its timing. Texts may contain {{field}} and {{field|fallback}}. The
// wire and stores use the same JSON form.
type Step struct {
	ID        string   `json:"id,omitempty"` // unique in the sequence, and stays when steps are added or removed; see [Step.Name]
	Text      string   `json:"text,omitempty"`
	Media     string   `json:"media,omitempty"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	Longitude *float64 `json:"longitude,omitempty"`
	Template  string   `json:"template,omitempty"`
	Timing    Timing   `json:"timing"`

	OnUncertain OnUncertain `json:"on_uncertain,omitempty"`
	OnlyIf      []string    `json:"only_if,omitempty"` // in a sequence for bookings: the statuses that want the step; empty: as [Step.WantedIn] says

	Buttons     []StepButton `json:"buttons,omitempty"`     // at most [MaxStepButtons]
	Interactive *Interactive `json:"interactive,omitempty"` // only without buttons

	// Variants are the texts of which each person gets one; empty: there is only one. Then Text and Template are those of
	// the first one, which a server of a version without variants sends. See [Step.Texts].
	Variants []StepVariant `json:"variants,omitempty"`

	ButtonLine string    `json:"-"` // the client's [ButtonLines]
	Values     ValueRule `json:"-"` // how the values of Official fit
	Official   *Approved `json:"-"` // the approved template; set when the content of the template replaces the template's name
	Literal    bool      `json:"-"` // true: Buttons and Interactive contain no fields, and are sent as they are written
}

// StepVariant is one of several texts of a step. All else belongs to the step. The wire and stores use the same JSON form.
type StepVariant struct {
	Share    int         `json:"share"` // percent of the people; 100 in all
	Template string      `json:"template,omitempty"`
	Content  VariantText `json:"content,omitzero"`

	Filled *Step `json:"-"` // the step with this text, or with the content of this template; nil: not filled yet
}

// VariantText is the content of a [StepVariant] without a template.
type VariantText struct {
	Text string `json:"text,omitempty"`
}

// Texts yields the step in each of its variants. A step without variants is yielded itself, so that the caller may change
// it. So is a variant that is filled.
func (s *Step) Texts() iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		if len(s.Variants) == 0 {
			yield(s)
			return
		}
		for i := range s.Variants {
			if !yield(s.variant(i)) {
				return
			}
		}
	}
}

// variant returns the step with the text of one variant.
func (s *Step) variant(i int) *Step {
	v := &s.Variants[i]
	if v.Filled != nil {
		return v.Filled
	}
	x := *s
	x.Variants, x.Text, x.Template = nil, v.Content.Text, v.Template
	return &x
}

// Texts yields each step with its position, once in each of its variants, as [Step.Texts] does.
func Texts(steps []Step) iter.Seq2[int, *Step] {
	return func(yield func(int, *Step) bool) {
		for i := range steps {
			for s := range steps[i].Texts() {
				if !yield(i, s) {
					return
				}
			}
		}
	}
}

// LeadVariants returns copies of steps, in which the first variant's text stands for the step's own, unless the step has
// one, too.
func LeadVariants(steps []Step) []Step {
	steps = slices.Clone(steps)
	for i := range steps {
		if s := &steps[i]; len(s.Variants) > 0 && s.Text == "" && s.Template == "" {
			s.Text, s.Template = s.Variants[0].Content.Text, s.Variants[0].Template
		}
	}
	return steps
}

// Limits of [Interactive], in characters. They are Meta's limits, and hold on every connection, because a sequence may
// change its session.
const (
	MaxListRows   = 10 // in all sections together
	MaxListButton = 20
	MaxListTitle  = 24 // of a section, and of a row
	MaxListText   = 72
	MaxLinkLabel  = 20
	MaxLinkURL    = 2000
)

// Interactive is what stands under the text of a message instead of buttons. Exactly one member is set. A frozen content
// has no fields in it. The wire and stores use the same JSON form.
type Interactive struct {
	List *ChoiceList `json:"list,omitempty"`
	Link *LinkButton `json:"link,omitempty"`
	Ask  AskKind     `json:"ask,omitempty"`
}

// ChoiceList is a list that opens when the person presses its button. The person chooses one row.
type ChoiceList struct {
	Button   string        `json:"button"`
	Sections []ListSection `json:"sections"`
	Line     string        `json:"line,omitempty"` // only in a frozen content: the client's own line above the numbers that stand for the rows; "": the usual one
}

// ListSection is a part of a list. Without a title, the list has only this section.
type ListSection struct {
	Title string    `json:"title,omitempty"`
	Rows  []ListRow `json:"rows"`
}

// ListRow is a row that a person can choose.
type ListRow struct {
	Title   string `json:"title"`
	Text    string `json:"text,omitempty"`    // below the title
	Payload string `json:"payload,omitempty"` // see [StepButton.Payload]
}

// LinkButton is a button that opens a page.
type LinkButton struct {
	Label string `json:"label"`
	URL   string `json:"url"` // begins with https://
}

// AskKind says what a message asks the person to share.
type AskKind string

const (
	AskLocation AskKind = "location"
	AskPhone    AskKind = "phone"
)

// Lines returns what stands for i under the text on networks that cannot show i. A question for the position or
// the number is only its text.
func (i *Interactive) Lines() string {
	switch {
	case i == nil:
	case i.Link != nil:
		return "\n\n" + i.Link.Label + ": " + i.Link.URL
	case i.List != nil:
		var b strings.Builder
		b.WriteString("\n\n" + cmp.Or(i.List.Line, DefaultButtonLine))
		n := 0
		for _, section := range i.List.Sections {
			if section.Title != "" {
				b.WriteString("\n" + section.Title)
			}
			for _, row := range section.Rows {
				n++
				b.WriteString("\n" + strconv.Itoa(n) + ". " + row.Title)
				if row.Text != "" {
					b.WriteString(" – " + row.Text)
				}
			}
		}
		return b.String()
	}
	return ""
}

// Clone returns a copy that shares nothing with i.
func (i *Interactive) Clone() *Interactive {
	if i == nil {
		return nil
	}
	c := *i
	if i.Link != nil {
		c.Link = new(*i.Link)
	}
	if i.List != nil {
		c.List = &ChoiceList{Button: i.List.Button, Sections: slices.Clone(i.List.Sections), Line: i.List.Line}
		for n := range c.List.Sections {
			c.List.Sections[n].Rows = slices.Clone(c.List.Sections[n].Rows)
		}
	}
	return &c
}

// Name returns the step's id. A step of a sequence that was stored without ids has its position as its id.
func (s Step) Name(position int) string {
	if s.ID != "" {
		return s.ID
	}
	return strconv.Itoa(position)
}

// WantedIn reports whether a booking with this status wants the step.
func (s Step) WantedIn(status BookingStatus) bool {
	if len(s.OnlyIf) > 0 {
		return slices.Contains(s.OnlyIf, status.String())
	}
	switch anchor := s.Timing.Anchor; {
	case anchor == BookingMovedAnchor, anchor == AnchorStart, anchor == "":
	case BookingAnchor(anchor):
		return anchor == "booking."+status.String()
	case s.Timing.Offset.Direction != Before && status == BookingArrived:
		return true
	}
	return status == BookingOpen || status == BookingConfirmed
}

// OnUncertain says what happens after an attempt without an answer, if the network does not recognise repeats.
type OnUncertain string

const (
	UncertainNever  OnUncertain = "never"  // the default: wait until a delivery receipt or the deadline decides
	UncertainResend OnUncertain = "resend" // send once more if no receipt came within [ResendAfter]; the recipient may see the message twice
)

// Timing says when a step leaves. The planner applies Anchor and Offset first, then At, then Window, then Jitter.
type Timing struct {
	Anchor   string    `json:"anchor"` // AnchorStart, the name of a date field, or a change of a booking; "" in a plan means AnchorStart
	Offset   Offset    `json:"offset"`
	At       string    `json:"at,omitempty"` // "HH:MM"; only with offsets in days or longer units
	Window   *Window   `json:"window,omitempty"`
	Jitter   int       `json:"jitter,omitempty"` // seconds, 0 to MaxJitter
	IfPast   IfPast    `json:"if_past,omitempty"`
	ValidFor *Validity `json:"valid_for,omitempty"` // how long after its planned time the message may leave; nil: 24 hours
}

// AnchorStart is the anchor of steps whose offset counts from the time of the call.
const AnchorStart = "start"

// Unit is a unit of an offset. Days and longer units are calendar arithmetic in the run's zone. Hours and shorter
// units are elapsed time.
type Unit string

const (
	Seconds Unit = "seconds"
	Minutes Unit = "minutes"
	Hours   Unit = "hours"
	Days    Unit = "days"
	Weeks   Unit = "weeks"
	Months  Unit = "months"
)

// Direction says whether an offset goes before or after its anchor.
type Direction string

const (
	Before Direction = "before"
	After  Direction = "after"
)

// Offset is a distance in time from the anchor. The zero value is no distance.
type Offset struct {
	Amount    int       `json:"amount"`
	Unit      Unit      `json:"unit,omitempty"`
	Direction Direction `json:"direction,omitempty"`
}

// Validity limits how long after its planned time a message may leave.
type Validity struct {
	Amount int  `json:"amount"`
	Unit   Unit `json:"unit"`
}

// IfPast says what happens to a step whose planned time is more than [PastGrace] ago.
type IfPast string

const (
	PastSkip   IfPast = "skip" // leave the step out of the run; this is the default
	PastSend   IfPast = "send_now"
	PastReject IfPast = "reject"
)

// PastGrace: a step whose planned time is at most this long ago counts as due now.
const PastGrace = 5 * time.Minute

// FieldKind is the type of a field's value, for sequences and contacts.
type FieldKind string

const (
	FieldText   FieldKind = "text"
	FieldDate   FieldKind = "date"
	FieldMedia  FieldKind = "media"
	FieldNumber FieldKind = "number" // only for contacts' fields
)

// Field is a field that a sequence's texts name. It is Required if the texts name it at least once without a fallback.
type Field struct {
	Name     string
	Kind     FieldKind
	Required bool
}
