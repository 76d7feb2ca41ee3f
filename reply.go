package puntuale

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReplyID names a reply. It grows with time and comes from the counter of messages.
type ReplyID int64

func (id ReplyID) String() string { return strconv.FormatInt(int64(id), 10) }

// ReplyKind is what a reply is.
type ReplyKind string

const (
	ReplyText     ReplyKind = "text"
	ReplyImage    ReplyKind = "image"
	ReplyVideo    ReplyKind = "video"
	ReplyAudio    ReplyKind = "audio"
	ReplyDocument ReplyKind = "document"
	ReplySticker  ReplyKind = "sticker"
	ReplyLocation ReplyKind = "location" // the text holds the place
	ReplyContact  ReplyKind = "contact"  // the text holds the names
	ReplyReaction ReplyKind = "reaction" // the text is the sign
	ReplyButton   ReplyKind = "button"   // the text is the button's or the list row's
	ReplyCall     ReplyKind = "call"
	ReplyOther    ReplyKind = "other"
)

// MaxReply is the longest text of a reply that is kept, in characters. A longer one is cut.
const MaxReply = 4096

// LocationText is the text of a location: its name, its address and its degrees, each on a line of its own.
func LocationText(name, address string, latitude, longitude float64) string {
	degrees := strconv.FormatFloat(latitude, 'f', -1, 64) + "," + strconv.FormatFloat(longitude, 'f', -1, 64)
	return strings.Join(slices.DeleteFunc([]string{name, address, degrees}, func(line string) bool { return line == "" }), "\n")
}

// ReplyWindow is how long after a run a reply counts as an answer to it, and the person counts as a recipient.
const ReplyWindow = 30 * 24 * time.Hour

// ReplyMedia is a file that came with a reply. The file stays with its network until somebody opens it. The JSON form is
// what stores keep.
type ReplyMedia struct {
	Type  string    `json:"type,omitempty"` // its media type, as the network says
	Name  string    `json:"name,omitempty"` // of the file
	Size  int64     `json:"size,omitempty"` // in bytes; 0: not told
	Until time.Time `json:"until,omitzero"` // the network keeps it until then; zero: not told
	Ref   []byte    `json:"ref,omitempty"`  // what the session's connector needs to fetch it
}

// ReplyFile is an opened file of a reply. It is whole, and must be closed.
type ReplyFile struct {
	io.ReadCloser
	Size int64 // in bytes
}

// MediaOpener opens the files that came with replies.
type MediaOpener interface {
	// OpenMedia fetches the file from the network of the session. Codes: gone (the network no longer has it, or never
	// said how to fetch it), unavailable (for now), too_large, overloaded.
	OpenMedia(ctx context.Context, s Session, m ReplyMedia) (*ReplyFile, error)
}

// ReplyEffect is what a reply did.
type ReplyEffect int8

const (
	ReplyNoEffect ReplyEffect = iota
	ReplyStopped              // it stopped messages of sequences that stop on a reply
	ReplyOptOut               // it withdrew consent
	ReplyOptIn                // it took a withdrawal back
)

// Reply is what a person wrote to a session, or what the client's people wrote to them on the linked phone itself.
type Reply struct {
	ID        ReplyID
	Session   SessionID
	Phone     string // "" of an erased person
	At        time.Time
	Own       bool // the client's people wrote it on the linked phone
	Kind      ReplyKind
	Text      string
	Media     *ReplyMedia // nil: none
	NetworkID string
	Run       RunID // the latest run that wrote to the person within [ReplyWindow]; 0: none
	Effect    ReplyEffect
	Read      time.Time // zero: nobody read it yet
	Blanked   bool      // the text was removed
}

// ReplyFilter chooses replies. Zero members choose all.
type ReplyFilter struct {
	Phone  string
	Unread bool
	Own    bool // also what the client's people wrote on the linked phone
}

// Conversation is what a client and a person wrote to each other, as a list shows it.
type Conversation struct {
	Phone    string
	Last     Reply     // the latest
	Unread   int       // replies
	Answered time.Time // when the client's people wrote last, by phone or dashboard; zero: never
}

// ReplyStore reads replies. Lists are newest first.
type ReplyStore interface {
	Replies(ctx context.Context, f ReplyFilter, p Page) ([]Reply, string, error) // invalid: the cursor
	Reply(ctx context.Context, id ReplyID) (Reply, error)                        // not_found
	// Conversations lists one row a person, by the latest reply; with unread only those with unread replies.
	Conversations(ctx context.Context, unread bool, p Page) ([]Conversation, string, error) // invalid: the cursor
	// Conversation returns one, zero where nobody wrote.
	Conversation(ctx context.Context, phone string) (Conversation, error)
	// Unread counts people with unread replies, at most so many.
	Unread(ctx context.Context, most int) (int, error)
	// MarkRead marks the phone's replies up to one as read; 0: all. It returns how many were unread.
	MarkRead(ctx context.Context, phone string, last ReplyID, now time.Time) (int, error)
	// Answered notes that the client's people wrote to the phone: automations leave the person alone for a while.
	Answered(ctx context.Context, phone string, at time.Time) error
}
