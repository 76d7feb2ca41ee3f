package puntuale

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// State is a message's state as the contract knows it. The numbers are what stores keep.
type State int8

const (
	Pending     State = 0
	Completed   State = 1
	Failed      State = 2
	Cancelled   State = 3
	Blacklisted State = 4
	Rescheduled State = 5
)

var stateNames = [...]string{"PENDING", "COMPLETED", "FAILED", "CANCELLED", "BLACKLISTED", "RESCHEDULED"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return stateNames[s]
}

// ParseState reads one of the contract's six words.
func ParseState(word string) (State, error) {
	for i, name := range stateNames {
		if name == word {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a message state", word)
}

// Origin says what created a message (tipologia).
type Origin string

const (
	OriginSingle     Origin = "SINGLE"
	OriginSequence   Origin = "SEQUENCE"
	OriginMassive    Origin = "MASSIVE"
	OriginAutomation Origin = "AUTOMATION"
)

// Content is what a message shows, rendered and frozen when its run starts. At least one of Text, MediaURL, a location
// or Template is set. The JSON form is what stores keep.
type Content struct {
	Text      string   `json:"text,omitempty"`
	MediaURL  string   `json:"media_url,omitempty"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`  // degrees, -90 to 90; set together with Longitude
	Longitude *float64 `json:"longitude,omitempty"` // degrees, -180 to 180
	Template  string   `json:"template,omitempty"`  // the template's name

	Official *Approved `json:"official,omitempty"` // what an Official session sends of the template instead
	Resend   bool      `json:"resend,omitempty"`   // see [UncertainResend]
}

// PlannedMessage is one message as the planner made it.
type PlannedMessage struct {
	Step    int     // position in the sequence, from 0
	Content Content // rendered
	Window  *Window // checked again at claim; nil: any moment

	Desired    time.Time // anchor, offset and "at", before window and jitter; zero when the caller wished no moment
	Due        time.Time // the promised moment, after window and jitter
	DueMax     time.Time // dry run only: the latest moment jitter may give; otherwise equal to Due
	ValidUntil time.Time // after this moment the message is never sent
	Dated      bool      // its moment comes from a date field, so a pause does not move it
	Limit      time.Time // ValidUntil is never later than this, also after a move; zero: no limit
	Purpose    Purpose
}

// SkippedStep is a step that was left out of a run, and why.
type SkippedStep struct {
	Step   int       `json:"step"`
	Moment time.Time `json:"moment"`
	Reason Reason    `json:"reason"`
}

// Message is one stored message.
type Message struct {
	Client  ClientID
	ID      MessageID
	Session SessionID
	Run     RunID
	Step    int
	Origin  Origin
	Phone   string

	Desired    time.Time // zero: none
	Due        time.Time // the promised moment, never changed
	Next       time.Time // the moment in the queue; retries, windows and deadlines change it
	ValidUntil time.Time

	Intent     int64     // 0 open, > 0 the attempt's token, -1 closed
	IntentAt   time.Time // of the last attempt; zero: none yet
	Attempt    int       // attempts begun, 0 at first
	Repeats    int       // attempts repeated because their answer was lost
	Generation int       // part of the connector's message id
	State      State
	Done       time.Time // when the outcome was recorded; zero while PENDING
	Reason     Reason    // zero where there is no further condition
	Detail     Reason    // the connector's words and ids
	ResentFrom MessageID // 0: the run planned it
}

// Planned is the moment at which the message is or was expected to leave (invio_previsto). It is Next. But while an attempt is open or
// uncertain, Next is only the next look, and Planned is the moment of the attempt.
func (m *Message) Planned() time.Time {
	if m.Intent > 0 && m.Next.After(m.IntentAt) {
		return m.IntentAt
	}
	return m.Next
}

// Uncertain reports whether it is unknown if the last attempt reached the network. At Next the dispatcher looks at the
// message again, but does not send it.
func (m *Message) Uncertain() bool {
	return m.State == Pending && m.Intent > 0 && m.Next.After(m.IntentAt) && !m.Held()
}

// Held reports whether a device took the message and has not reported its outcome. Next is the end of the hold.
func (m *Message) Held() bool {
	return m.State == Pending && m.Intent >= DeviceToken && m.Detail.IsZero()
}

// Left is the moment the message left (invio_effettivo); zero unless it is known to have left.
func (m *Message) Left() time.Time {
	if m.State == Completed {
		return m.IntentAt
	}
	return time.Time{}
}

// Response is the result of the message (risposta). It is never zero.
func (m *Message) Response() Reason {
	if !m.Reason.IsZero() {
		return m.Reason
	}
	switch m.State {
	case Completed:
		return Because(ReasonCompleted)
	case Cancelled:
		return Because(ReasonCancelled)
	case Blacklisted:
		return Because(ReasonBlacklisted)
	case Rescheduled:
		return Because(ReasonRescheduled)
	case Failed:
		return Because(ReasonFailed)
	default:
		return Because(ReasonPending)
	}
}

// MessageDetail is a message with its data from the run.
type MessageDetail struct {
	Message
	Purpose      Purpose
	Received     time.Time  // when the call was accepted
	RunName      string     // nome_invio
	Sequence     SequenceID // 0: none
	Campaign     CampaignID // 0: none
	Reference    string     // the caller's own; "": none
	ClientName   string     // at start
	SequenceName string     // at start; "" without a sequence
	Zone         string     // IANA name the run was planned in
	Content      Content
	Window       *Window   // nil: any moment
	Request      []byte    // the call's body, byte for byte
	Departed     time.Time // when it left the network's servers, by a receipt; zero: no receipt says so
	GivenUp      time.Time // when the network gave it up, by a receipt; zero: no receipt says so
	Delivered    time.Time // likewise
	Read         time.Time // likewise
	Ended        bool      // it was sent, or failed; stays true after a resend
	Blanked      bool      // Content and Request were removed; for an erased person also Phone, RunName and Detail
}

// longestCall bounds how much of a call is read for a name, in bytes.
const longestCall = 16 << 10

// RecipientName returns the recipient's name from a call's body: from the member nome, or else from name. In a single
// send, name is the name of the send, so it is not used. The result is "" if the body has no name, or is longer than 16
// KiB.
func RecipientName(origin Origin, request []byte) string {
	var call map[string]json.RawMessage
	if len(request) == 0 || len(request) > longestCall || json.Unmarshal(request, &call) != nil { // a removed or too long body gives no name
		return ""
	}
	for _, field := range []string{"nome", "name"} {
		var text string
		if field == "name" && origin == OriginSingle {
			continue
		}
		if json.Unmarshal(call[field], &text) != nil {
			continue
		}
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			return text
		}
	}
	return ""
}

// Moved reports whether another message replaced this one before it was sent or failed: a person moved it or restored it.
func (m *MessageDetail) Moved() bool { return m.State == Rescheduled && !m.Ended }

// MessageOutcome is the outcome of a message in the list of a period. It does not depend on the state: a message with
// an outcome stays in the list after a resend.
type MessageOutcome struct {
	ID     MessageID
	Sent   bool
	Reason Reason    // why it failed, as in risposta; zero if it was sent
	Done   time.Time // when the outcome was recorded, or last corrected
}

// MessageFilter narrows a list of messages; zero values do not narrow.
type MessageFilter struct {
	State     *State
	Sequence  SequenceID
	Campaign  CampaignID
	Phone     string
	Reference string // of the caller
	Origin    Origin
	From, To  time.Time // of the planned moment: from inclusive, to exclusive
	Standing  bool      // leaves out RESCHEDULED ones: another message stands in their place

	// Text has words to search in the message's text and its recipient's name ([RecipientName]). Each word must be in
	// one of them, in any order, also as a part of a longer word. Case and accents are ignored. A page with a text
	// looks through 10,000 messages at most; it may hold less than its limit, or nothing, and name a next one.
	Text string

	// Look bounds how many calls one page reads, from the newest that may have messages before To; 0: no bound. With a
	// bound, a page may have fewer rows than its limit, or none, although a next page exists. It does not apply if
	// Phone is set.
	Look int
}

// MediaSource fetches the files at messages' media addresses. Connectors use it in Prepare. Many goroutines may call
// its methods at once.
type MediaSource interface {
	// Fetch returns the file. The steps of a run, and their retries, share one fetch of an address, for as long as the
	// source keeps files. It returns when the context ends; the fetch goes on while others wait for it.
	//
	// Every error is a [*SendError]. It is Final when trying again would not help: a forbidden address, a refusal, a
	// file too large or of the wrong kind. Else it is Transient. Its text is safe to show to the caller: it reveals
	// nothing about our own network.
	Fetch(ctx context.Context, r MediaRequest) (*Media, error)
}

// MediaRequest names one file of one run.
type MediaRequest struct {
	Client   ClientID
	Run      RunID
	URL      string
	MaxBytes int64 // the most that the connector can carry of this kind; 0: the source's own limit
}

// Media is one fetched file. Each Fetch returns a reader of its own, which must be closed.
type Media struct {
	io.ReadSeekCloser
	Size        int64  // bytes, at least 1
	ContentType string // a media type without parameters, "image/jpeg"; "application/octet-stream" if it is unknown
}

// MediaKind is the kind as which WhatsApp shows a file, by the extension of its name or address: image, video, audio or
// document.
func MediaKind(name string) string {
	name, _, _ = strings.Cut(name, "?")
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png":
		return "image"
	case ".mp4", ".3gp":
		return "video"
	case ".mp3", ".ogg", ".aac", ".amr", ".m4a":
		return "audio"
	}
	return "document"
}
