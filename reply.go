package puntuale

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReplyID names a reply. It comes from the same counter as messages' ids, and grows with time.
type ReplyID int64

func (id ReplyID) String() string { return strconv.FormatInt(int64(id), 10) }

// ReplyKind says what a reply contains.
type ReplyKind string

const (
	ReplyText     ReplyKind = "text"
	ReplyImage    ReplyKind = "image"
	ReplyVideo    ReplyKind = "video"
	ReplyAudio    ReplyKind = "audio"
	ReplyDocument ReplyKind = "document"
	ReplySticker  ReplyKind = "sticker"
	ReplyLocation ReplyKind = "location" // Text has the place; see [LocationText]
	ReplyContact  ReplyKind = "contact"  // Text has the names of the contacts
	ReplyReaction ReplyKind = "reaction" // Text is the emoji of the reaction
	ReplyButton   ReplyKind = "button"   // Text has the words of the button or list row that the person chose
	ReplyCall     ReplyKind = "call"
	ReplyOther    ReplyKind = "other"
)

// MaxReply is the length of the longest text of a reply that is stored, in characters. A longer text is cut.
const MaxReply = 4096

// LocationText returns the text of a location: its name, its address and its coordinates in degrees, each on its own
// line.
func LocationText(name, address string, latitude, longitude float64) string {
	degrees := strconv.FormatFloat(latitude, 'f', -1, 64) + "," + strconv.FormatFloat(longitude, 'f', -1, 64)
	return strings.Join(slices.DeleteFunc([]string{name, address, degrees}, func(line string) bool { return line == "" }), "\n")
}

// RunAnswerTime: a message that the recipient of a run writes at most this long after the run counts as an answer to
// the run.
const RunAnswerTime = 30 * 24 * time.Hour

// ReplyMedia is a file that came with a reply. The file stays at the network, and this server fetches the file when
// somebody opens it. The store writes ReplyMedia as JSON.
type ReplyMedia struct {
	Type  string    `json:"type,omitempty"` // media type, as the network reported it
	Name  string    `json:"name,omitempty"` // name of the file
	Size  int64     `json:"size,omitempty"` // size of the file in bytes; 0: unknown
	Until time.Time `json:"until,omitzero"` // when the network deletes the file; zero: unknown
	Ref   []byte    `json:"ref,omitempty"`  // what the session's connector needs to fetch the file
}

// KeptFile says what became of the file of a reply, if the client's settings ask the server to keep it. The store writes it
// as JSON.
type KeptFile struct {
	Waiting bool       `json:"waiting,omitempty"`       // the file is still being fetched and checked
	File    FileID     `json:"file,omitempty"`          // "": it is not kept
	Name    string     `json:"name,omitempty"`          // of the kept file: that of the reply, with the extension of the content
	Type    string     `json:"type,omitempty"`          // media type of the content
	Size    int64      `json:"size,omitempty"`          // bytes
	Small   bool       `json:"small_picture,omitempty"` // there is a small picture
	Code    ReasonCode `json:"code,omitempty"`          // why the file is not kept
	Args    []string   `json:"args,omitempty"`
}

// Reason returns why the file is not kept, or zero.
func (k *KeptFile) Reason() Reason { return Because(k.Code, k.Args...) }

// FileOf returns the id of the reply's kept file, or "".
func (r *Reply) FileOf() FileID {
	if r.Kept == nil {
		return ""
	}
	return r.Kept.File
}

// IncomingFile is the file of a reply that the server is to keep. The store has it from the transaction that stores the
// reply until the file is kept, or an attempt fails for good.
type IncomingFile struct {
	Client  ClientID
	Partner PartnerID
	Reply   ReplyID
	Due     time.Time // when the next attempt may begin. While an attempt runs, it is the attempt's deadline, and names it
	Tries   int       // attempts that began
}

// IncomingFileWithin is how long an attempt to keep a file may take. After it, another one may begin.
const IncomingFileWithin = 5 * time.Minute

// IncomingFileTries is how many attempts there are to keep a file.
const IncomingFileTries = 8

// IncomingFileRetry returns how long to wait after the attempt with this number, from 1. It returns false after the last
// attempt, about 22 hours after the reply.
func IncomingFileRetry(tries int) (time.Duration, bool) {
	waits := [IncomingFileTries - 1]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour}
	if tries < 1 || tries > len(waits) {
		return 0, false
	}
	return waits[tries-1], true
}

// MaxReplyFile is the largest file of a reply that is fetched, in bytes.
const MaxReplyFile = 100 << 20

// ReplyFile is a file of a reply, fetched to its end. The caller must close the file.
type ReplyFile struct {
	io.ReadCloser
	Size int64 // size of the file in bytes
}

// MediaOpener opens the files that came with replies.
type MediaOpener interface {
	// OpenMedia fetches the file from the session's network, if it has at most so many bytes. Codes: gone (the network no
	// longer has the file, or never said how to fetch it), unavailable (try again later), too_large, overloaded.
	OpenMedia(ctx context.Context, s Session, m ReplyMedia, maxBytes int64) (*ReplyFile, error)
}

// ReplyEffect says what a reply changed.
type ReplyEffect int8

const (
	ReplyNoEffect ReplyEffect = iota
	ReplyStopped              // the reply cancelled messages of sequences that stop on a reply
	ReplyOptOut               // the reply withdrew consent
	ReplyOptIn                // the reply reverted a withdrawal of consent
	ReplyAnswered             // the reply answered a question about a booking
	ReplyUnclear              // the reply answers a question, but changes nothing: people must look
)

var replyEffects = [...]string{"", "stopped", "opt_out", "opt_in", "answered", "unclear"}

// String returns the word of the wire; "": no effect.
func (e ReplyEffect) String() string {
	if e < 0 || int(e) >= len(replyEffects) {
		return ""
	}
	return replyEffects[e]
}

// Reply is a message that a person wrote to a session, or that the client's people wrote to a person on the linked
// phone.
type Reply struct {
	ID        ReplyID
	Session   SessionID
	Phone     string // "" if the person was erased
	At        time.Time
	Own       bool // the client's people wrote it on the linked phone
	Kind      ReplyKind
	Text      string
	Media     *ReplyMedia // nil: no file
	Kept      *KeptFile   // nil: the file stays at the network only
	NetworkID string
	Run       RunID // run of InReplyTo, if it is known; else the latest run that sent a message to the person, at most [RunAnswerTime] before the reply; 0: none
	Effect    ReplyEffect
	Read      time.Time // zero: nobody has read it yet
	Blanked   bool      // the text was removed

	Payload   string      // of the button, as the network told it
	Button    string      // label of the pressed or named button
	InReplyTo MessageID   // the message that the reply answers; 0: not known
	Matched   AnswerMatch // how InReplyTo was found; "": it was not
}

// ReplyFilter chooses the replies that match all its set members. A zero member other than Own chooses all.
type ReplyFilter struct {
	Phone  string
	Unread bool
	Own    bool // false: messages that the client's people wrote on the linked phone are left out
}

// Conversation is what a client and a person wrote to each other, as one row of a list.
type Conversation struct {
	Phone    string
	Last     Reply     // the latest reply
	Unread   int       // number of unread replies
	Answered time.Time // when the client's people last wrote, on the phone or in the dashboard; zero: never
}
