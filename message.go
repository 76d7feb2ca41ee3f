package puntuale

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"
	"time"
)

// State is a message's state in the words of the contract. The database contains the numbers.
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

// Origin says what kind of call created a message (tipologia).
type Origin string

const (
	OriginSingle     Origin = "SINGLE"
	OriginSequence   Origin = "SEQUENCE"
	OriginMassive    Origin = "MASSIVE"
	OriginAutomation Origin = "AUTOMATION"
)

// Content is what a message shows. It is rendered and frozen when its run starts. It has at least one of Text,
// MediaURL, a location or Template. The store writes it as JSON.
type Content struct {
	Text      string   `json:"text,omitempty"`
	MediaURL  string   `json:"media_url,omitempty"`
	MediaName string   `json:"media_name,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`  // degrees, -90 to 90; always set together with Longitude
	Longitude *float64 `json:"longitude,omitempty"` // degrees, -180 to 180
	Template  string   `json:"template,omitempty"`  // the template's name

	Asks *ButtonSet `json:"asks,omitempty"` // the buttons under the text; nil: none

	Interactive *Interactive `json:"interactive,omitempty"` // nil: none; a content with buttons has none

	Official *Approved `json:"official,omitempty"` // what an Official session sends instead of the other fields
	Resend   bool      `json:"resend,omitempty"`   // see [UncertainResend]
}

// Empty reports whether the content shows nothing.
func (c *Content) Empty() bool {
	return c.Text == "" && c.MediaURL == "" && c.Latitude == nil && c.Template == "" && c.Official == nil
}

// PlannedMessage is one message that the planner made.
type PlannedMessage struct {
	Step    int     // position in the sequence, from 0
	StepID  string  // the step's id; "": its position
	Content Content // the rendered content
	Window  *Window // the hours in which the message may leave; the claim checks them again; nil: at any time

	Desired    time.Time // the time that anchor, offset and At give, before window and jitter change it; zero: the caller asked for no time
	Due        time.Time // the promised time, after window and jitter
	DueMax     time.Time // only in a dry run: the latest time that jitter may give; otherwise equal to Due
	ValidUntil time.Time // after this time the message is never sent
	Limit      time.Time // latest value of ValidUntil, if the message gets a new due time; zero: no limit
	Dated      bool      // the due time comes from a date field, so a pause of the campaign does not delay it
	Purpose    Purpose
	Variant    int8 // which variant of the step it is, from 1; 0: the step has none

	Variants  *[]Content // only in a dry run: the contents of all variants of the step; a pointer, because few messages have any
	Way       MessageWay // only in a dry run for an Official session: the way of the message, as things are now
	WayReason ReasonCode
}

// SkippedStep is a step that the planner left out of a run, with the reason.
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

	Desired    time.Time // see [PlannedMessage.Desired]; zero: none
	Due        time.Time // the promised time; never changes
	Next       time.Time // when the dispatcher looks at the message next; retries, windows and deadlines change it
	ValidUntil time.Time

	Intent     int64     // 0: no attempt is open; > 0: token of the open attempt; -1: the message is closed
	IntentAt   time.Time // when the last attempt began; zero: no attempt yet
	Attempt    int       // number of attempts that began
	Repeats    int       // number of attempts that repeated an earlier attempt whose answer was lost
	Generation int       // how often the message was sent again; part of the connector id
	State      State
	Done       time.Time // when the outcome was recorded; zero while PENDING
	Reason     Reason    // why the message is in its state; zero if the state says everything
	Detail     Reason    // what the connector reported, with ids
	ResentFrom MessageID // the message that this one replaces; 0: none
}

// Planned returns when the message is, or was, expected to leave (invio_previsto). Usually this is Next. If an attempt
// is open or uncertain, Next is only the time of the dispatcher's next check. Planned then returns the time of the
// attempt.
func (m *Message) Planned() time.Time {
	if m.Intent > 0 && m.Next.After(m.IntentAt) {
		return m.IntentAt
	}
	return m.Next
}

// Uncertain reports whether the message is uncertain: nobody knows whether the last attempt reached the network. At
// Next the dispatcher looks at the message again, but does not send it as a new message.
func (m *Message) Uncertain() bool {
	return m.State == Pending && m.Intent > 0 && m.Next.After(m.IntentAt) && !m.Held()
}

// Held reports whether a device took the message and has not reported its outcome. Then Next is the end of the hold.
func (m *Message) Held() bool {
	return m.State == Pending && m.Intent >= DeviceToken && m.Detail.IsZero()
}

// LeftAt returns when the message left (invio_effettivo). It is zero if the message is not known to have left.
func (m *Message) LeftAt() time.Time {
	if m.State == Completed {
		return m.IntentAt
	}
	return time.Time{}
}

// Response returns the result of the message (risposta). It is never zero.
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

// MessageDetail is a message together with data from its run.
type MessageDetail struct {
	Message
	Purpose      Purpose
	Received     time.Time  // when the server accepted the call
	RunName      string     // name of a single or mass send (nome_invio)
	Sequence     SequenceID // 0: none
	Campaign     CampaignID // 0: none
	Reference    string     // the caller's own name for the message's subject; "": none
	ClientName   string     // the client's name when the run started
	SequenceName string     // the sequence's name when the run started; "": no sequence
	Zone         string     // IANA name of the zone in which the run was planned
	OfSequence   int        // the step's position in the sequence, from 0; Step counts only the run's messages
	Variant      int        // which text of the step or campaign it is, from 1; 0: there is only one
	Content      Content
	Window       *Window       // when the message may leave; nil: at any time
	Validity     time.Duration // see [FrozenStep.Validity]; 0: as Due and ValidUntil say
	Request      []byte        // the call's body, unchanged
	Departed     time.Time     // when the message left the network's servers, as a receipt says; zero: no receipt says so
	GivenUp      time.Time     // when the network gave the message up, as a receipt says; zero: no receipt says so
	Delivered    time.Time     // when the message was delivered, as a receipt says; zero: no receipt says so
	Read         time.Time     // when the recipient read the message, as a receipt says; zero: no receipt says so
	Links        []TrackedLink // the tracked links in the text
	Ended        bool          // the message was sent or failed; stays true after somebody sent it again
	Way          MessageWay    // of a message of an Official session, if the caller asked for it; "": unknown
	WayReason    ReasonCode    // "": unknown
	Blanked      bool          // Content and Request were removed; if the person was erased, Phone, RunName and Detail were also removed
}

// Deadline returns the deadline of a message that replaces m, and has this due time.
func (m *MessageDetail) Deadline(due time.Time) time.Time {
	return due.Add(cmp.Or(m.Validity, m.ValidUntil.Sub(m.Due)))
}

// longestCall is the longest body in which RecipientName looks for a name, in bytes.
const longestCall = 16 << 10

// RecipientName returns the recipient's name from a call's body: the member nome, or else the member name. In a
// single send, name is the name of the send, so only nome counts. RecipientName returns "" if the body has no name,
// or is longer than 16 KiB.
func RecipientName(origin Origin, request []byte) string {
	var call map[string]json.RawMessage
	if len(request) == 0 || len(request) > longestCall || json.Unmarshal(request, &call) != nil { // the body was removed, is too long, or is not JSON
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

// Moved reports whether another message replaced m before m was sent or failed. This happens when a person gives the
// message a new time, or undoes its cancellation.
func (m *MessageDetail) Moved() bool { return m.State == Rescheduled && !m.Ended }

// MessageOutcome is the outcome of a message in a list of outcomes. It stays in the list after somebody sent the
// message again, because it does not depend on the message's state.
type MessageOutcome struct {
	ID     MessageID
	Sent   bool
	Reason Reason    // why the message failed, as in risposta; zero if it was sent
	Done   time.Time // when the outcome was recorded or last corrected
}

// MaxCounted is the number at which counts beside the filters of a list stop. A larger count means that there are more.
const MaxCounted = 10_000

// MessageFilter chooses the messages that match all its set members. A zero member chooses all.
type MessageFilter struct {
	State              *State
	Sequence           SequenceID
	Campaign           CampaignID
	Phone              string
	Reference          string // the reference that the caller gave
	Origin             Origin
	From, To           time.Time // range of the planned time: From inclusive, To exclusive
	WithoutRescheduled bool      // leaves out RESCHEDULED messages, because other messages replaced them

	// Text has words to find in the message's text or in the recipient's name ([RecipientName]). Each word must be in
	// one of the two, in any order, perhaps inside a longer word. Case and accents are ignored. For one page, the
	// store searches at most 10,000 messages. So a page may be short or empty although a next page exists.
	Text string

	// Look is the largest number of calls that the store searches for one page. The search begins with the newest
	// call that may have messages before To. With Look, a page may be short or empty although a next page exists. 0:
	// no limit. The store ignores Look if Phone is set.
	Look int
}

// MediaSource fetches files from the media addresses of messages. Connectors use it in Prepare. Many goroutines may
// call its methods at the same time.
type MediaSource interface {
	// Fetch returns the file. While the source keeps the file of an address, all steps and retries of a run share one
	// download. When ctx ends, Fetch returns immediately. The download continues if other callers wait for the same
	// file.
	//
	// Every error is a [*SendError]. It is Transient if another attempt may help. It is Final if the address is
	// forbidden, the server refuses, or the file is too large or has the wrong kind. Its text may be shown to the
	// caller, because it reveals nothing about the server's own network.
	Fetch(ctx context.Context, r MediaRequest) (*Media, error)
}

// MediaRequest names a file that one run needs.
type MediaRequest struct {
	Client   ClientID
	Run      RunID
	URL      string
	MaxBytes int64 // most bytes that the connector can send in a file of this kind; 0: the limit of the MediaSource
}

// Media is one fetched file. Each call of Fetch returns its own reader, and the caller must close it.
type Media struct {
	io.ReadSeekCloser
	Size        int64  // bytes, at least 1
	ContentType string // a media type without parameters, such as "image/jpeg"; "application/octet-stream": unknown
	Name        string // of an uploaded file; "": unknown
	Hash        []byte // SHA-256 of the bytes of an uploaded file, so that nobody must read them; nil: unknown
}

// CheckReadable reads the first byte, so that nothing begins if the storage of files does not have the file. The error is a
// transient [SendError].
func (m *Media) CheckReadable() error {
	_, err := m.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.ReadFull(m, make([]byte, 1))
	}
	if err == nil {
		return nil
	}
	detail := Quoted("read")
	if e, ok := errors.AsType[*Error](err); ok {
		detail = e.Reason
	}
	return &SendError{Kind: Transient, Reason: Because(ReasonNotUploaded), Detail: detail, Err: err}
}

// FileID is the id of a file that a client uploaded. Nobody can guess it. Its end is the extension of the file's type,
// such as "k7…q4.jpg".
type FileID string

// fileScheme begins the media address of an uploaded file. The file's id follows.
const fileScheme = "file:"

// fileName is how many letters and digits an id has before its extension: 130 random bits.
const fileName = 26

// Address returns the media address by which steps, templates and messages name the file.
func (id FileID) Address() string { return fileScheme + string(id) }

// ParseFileID reads an id. It returns false if a text cannot be an id.
func ParseFileID(text string) (FileID, bool) {
	name, extension, _ := strings.Cut(text, ".")
	plain := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	}
	return FileID(text), len(name) == fileName && extension != "" && len(extension) <= 4 && plain(name) && plain(extension)
}

// UploadedFile returns the id in the media address of an uploaded file. named is true if the address begins like one; then
// id is "" if the rest cannot be an id.
func UploadedFile(address string) (id FileID, named bool) {
	text, named := strings.CutPrefix(address, fileScheme)
	if found, ok := ParseFileID(text); named && ok {
		return found, true
	}
	return "", named
}

// FilesIn iterates over the ids of the uploaded files that a text names, such as the JSON of a sequence.
func FilesIn(text string) iter.Seq[FileID] {
	return func(yield func(FileID) bool) {
		for {
			_, rest, found := strings.Cut(text, fileScheme)
			if !found {
				return
			}
			text = rest
			end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
			if end < 0 {
				end = len(rest)
			}
			if id, ok := ParseFileID(strings.TrimRight(rest[:end], ".")); ok && !yield(id) {
				return
			}
		}
	}
}

// Limits of uploaded files.
const (
	MaxFileBytes       = 16 << 20  // of one file
	MaxDocumentBytes   = 100 << 20 // of a document for an Official number, if the bytes are outside of the database
	MaxClientFileBytes = 1 << 30   // of all files of a client
	MaxClientFiles     = 1000      // files that only people sent may be half of them, and half of the bytes
	FilePartBytes      = 1 << 20   // the store keeps a file in parts of this size; only the last one is smaller
	MaxSmallPicture    = 16 << 10  // of the small picture of an image
)

// File is a file that a client uploaded, or that a person sent. Its type is the type of its content, whatever its name says.
type File struct {
	ID            FileID
	Name          string // with the extension of the type
	Type          string // a media type, such as "image/jpeg"
	Hash          []byte // SHA-256 of the bytes
	Size          int64  // bytes
	Width, Height int    // pixels of an image, or points of a PDF's first page; 0: not known
	Small         []byte // a small picture of an image, JPEG of at most [MaxSmallPicture] bytes; the store returns it only alone
	Created       time.Time
	Needed        time.Time // when the last message with it is over, rounded up to a day; the time of the upload or of the reply, if there is none

	Received bool          // only people sent it, and nobody uploaded it
	For      *IncomingFile // the attempt that stores it, for the calls that store files; nil: somebody uploads it
}

// FileUser is what names an uploaded file.
type FileUser struct {
	Kind FileUserKind
	ID   int64
	Name string
}

// FileUserKind says what names a file.
type FileUserKind int

// What names files.
const (
	FileUserSequence FileUserKind = 1 + iota
	FileUserTemplate
	FileUserRule
	FileUserCampaign
)

// MediaKind returns the kind under which WhatsApp shows a file: image, video, audio or document. The extension of the
// name or address decides.
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

// UncertainAttempt is an attempt that may have reached the network; see [Message.Uncertain].
type UncertainAttempt struct {
	ID   MessageID
	At   time.Time // when the attempt began
	Next time.Time // when the dispatcher looks at the message again
}

// QuarterCount is how many messages are to leave in one quarter of an hour.
type QuarterCount struct {
	Begin time.Time
	N     int
}

// MessageEvent is something unusual that happened to a message, such as a failed attempt or a late delivery receipt.
type MessageEvent struct {
	At     time.Time
	Kind   string // such as "retry", "refused", "late refused", "clicked": the person first followed a link, or "merge": a later report proved that the message was sent
	Detail Reason // what the connector reported
}

// LinkPath is the path of tracked links, before the code.
const LinkPath = "/r/"

// LinkRef names a tracked link: the Nth address in the text of a step of a run, from 1. A message that is sent again has
// the same links.
type LinkRef struct {
	StepRef
	N int
}

// TrackedLink is a tracked link of a message.
type TrackedLink struct {
	N        int
	Address  string    // where it leads; "": the link has ended
	Clicked  time.Time // when a person first followed it; zero: never
	Clicks   int64     // of people
	Machines int64     // how often a preview, a scanner or another machine opened it
}

// Click is one call of a tracked link.
type Click struct {
	LinkRef
	At      time.Time
	Machine bool // it is known that no person made the call
}
