package puntuale

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ReceiptKind is what the network reports about a message after it accepted the message.
type ReceiptKind int8

const (
	ReceiptSent      ReceiptKind = iota + 1 // the message left the network's servers
	ReceiptDelivered                        // the message is on the recipient's device
	ReceiptRead                             // the recipient has seen the message
	ReceiptFailed                           // the network gave the message up
)

// DeliveryReceipt is one report of the network about one message. Receipts may come late, in any order, and more than
// once.
type DeliveryReceipt struct {
	MessageRef
	Session SessionID // session that got the receipt; a message of another session does not change
	Token   int64     // token of the attempt that the receipt is about
	Kind    ReceiptKind
	At      time.Time
	Reason  Reason // only with ReceiptFailed
	Detail  Reason // what the network reported, with ids
	Charge  Charge // what the network bills; zero: the network did not say
}

// Charge is what the network reported about the price of a message.
type Charge struct {
	MessageKind
	Billable bool   // false: the message was free of charge
	Phone    string // number of the recipient, which gives the country; "": not reported
}

// DeliveryStatus combines all receipts of one message. For each kind of receipt, it contains the earliest time in a
// receipt of this kind.
type DeliveryStatus struct{ Sent, Delivered, Read, Failed time.Time }

// With returns the status after one more receipt. The order of receipts and repeated receipts make no difference.
func (r DeliveryStatus) With(k ReceiptKind, at time.Time) DeliveryStatus {
	moment := map[ReceiptKind]*time.Time{ReceiptSent: &r.Sent, ReceiptDelivered: &r.Delivered, ReceiptRead: &r.Read, ReceiptFailed: &r.Failed}[k]
	if moment != nil && (moment.IsZero() || at.Before(*moment)) {
		*moment = at
	}
	return r
}

// Verdict returns what the receipts prove, or 0 if they prove nothing. A delivery wins over a failure, and a failure
// over "sent". A receipt that says only "sent" decides only about a message whose outcome was uncertain.
func (r DeliveryStatus) Verdict() Verdict {
	switch {
	case !r.Delivered.IsZero() || !r.Read.IsZero():
		return Sent
	case !r.Failed.IsZero():
		return Refused
	case !r.Sent.IsZero():
		return Sent
	}
	return 0
}

// InboundMessage is one message that a person wrote to a session, or that the client's people wrote to a person on
// the linked phone itself. Connectors do not pass on messages in groups, nor the history that a network sends to a
// new device.
type InboundMessage struct {
	Client  ClientID
	Session SessionID
	Phone   string // the person's number "+…", or another name that the network has for the person
	Chat    string // the network's own name of the chat, which stays the same if the number becomes known later; "": use Phone
	At      time.Time
	ID      string      // the network's id; "": the message opens a window and stops sequences, but is not stored
	Own     bool        // the client's people wrote the message: it opens no window and stops no sequence
	Group   bool        // Phone is a group that the session writes to: the message opens the group's window, but is not stored
	Kind    ReplyKind   // a reaction opens a window but stops no sequence
	Text    string      // text or caption; at most [MaxReply] characters are stored
	Media   *ReplyMedia // nil: no file

	Payload   string    // of the button or list row that the person chose
	InReplyTo MessageID // the message of this server that the person quotes, if its id alone says so; 0: not known
	Quoted    string    // the network's id of the message that the person quotes, if InReplyTo is 0
}

// Limits of what a connector passes on from one message, in bytes.
const (
	maxReplyID    = 300
	maxReplyName  = 255
	maxReplyType  = 255
	maxReplyRef   = 8 << 10
	maxReplyBytes = 4 * MaxReply
	maxPayload    = 4*MaxPayload + 128 // a payload of ours, with what names the button
)

// Storable returns the message with texts that every database accepts. It cuts texts that are too long to store.
func (m InboundMessage) Storable() InboundMessage {
	m.ID, m.Text = storable(m.ID, maxReplyID), storable(m.Text, maxReplyBytes)
	m.Payload, m.Quoted = storable(m.Payload, maxPayload), storable(m.Quoted, maxReplyID)
	n := 0
	for i := range m.Text {
		if n++; n > MaxReply {
			m.Text = m.Text[:i]
			break
		}
	}
	if m.Media != nil {
		media := *m.Media
		media.Type, media.Name, media.Size = storable(media.Type, maxReplyType), storable(media.Name, maxReplyName), max(0, media.Size)
		media.Name = strings.Trim(media.Name[strings.LastIndexAny(media.Name, `/\`)+1:], ". ") // Name may become the name of a download, so this removes folders, dots and spaces
		if len(media.Ref) > maxReplyRef {
			media.Ref = nil // no real reference is this long
		}
		m.Media = &media
	}
	return m
}

// storable returns the beginning of text: only whole characters, and no NUL. The argument limit is the largest length,
// in bytes.
func storable(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// Preference is a person's wish about what a client may send.
type Preference struct {
	Client  ClientID
	Session SessionID
	Phone   string // see [InboundMessage.Phone]
	Stop    bool   // true: no more marketing; false: marketing is allowed again
	At      time.Time
	Reason  string // the network's words, stored as proof
}

// PreferenceReason is how a blacklist entry's reason begins if an earlier version added the entry for a preference.
const PreferenceReason = "Preferenza: "

// Alias is another name by which the network of a session knows a person.
type Alias struct {
	Client  ClientID
	Session SessionID
	Name    string // another form of the number "+…", or an id that is not a number
	Phone   string // the name under which the person is a recipient of messages
}

// InboundBatch contains the events of one session that the network reported in one call.
type InboundBatch struct {
	Aliases     []Alias
	Receipts    []DeliveryReceipt
	Messages    []InboundMessage
	Preferences []Preference
	Changes     []NumberChange  // without Mark and NameMark
	Templates   []TemplateEvent // events about templates of the session's business
}

// TakenMessage is an inbound message on its way into the store. Phone is the name under which the message is stored. If
// Names is empty, the store itself finds Names, Phone and Keep, in the transaction that stores the message.
type TakenMessage struct {
	InboundMessage
	Names  []string // all names under which the person may be a recipient
	Mark   string   // keyed hash of session, chat and ID, to recognise a repeat; "": the message is not stored
	Effect ReplyEffect
	Keep   KeepReplies
	// MayChangeConsent reports whether the message may change consent. If it may, the caller must call EnterConsent
	// before it stores the message. If MayChangeConsent is nil, the message cannot change consent.
	MayChangeConsent func(ClientSettings) bool
	// Answers reports whether the message answers a question of a booking. The caller must then first change the booking
	// ([PutBooking].Reply), and set Decided. If Answers is nil, the message is no answer.
	Answers func(a AskedQuestions) bool
	Decided bool // what the message answers was decided, so the store does not ask Answers
	Tap     Tap  // the button that the message's payload names; zero: none of this server
	Button  string
	Matched AnswerMatch               // how InReplyTo was found; the store keeps InReplyTo only if it is a message to the person
	Says    func(words []string) bool // reports whether the whole message is one of the words, as rules compare them; nil: no rule waits for the message
}

// ErrConsentFirst refuses to store a message that may change consent. The caller must first call EnterConsent.
var ErrConsentFirst = errors.New("the message may change consent, which comes first")

// ErrAnswerFirst refuses to store a message that answers a question of a booking. The answer must first change the booking.
var ErrAnswerFirst = errors.New("the message answers a question, and the booking comes first")

// ShownName returns the name under which a person's messages are stored. It is a number, if one is known.
func ShownName(names []string) string {
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "+") }); i >= 0 {
		return names[i]
	}
	return names[0]
}

// OptOutReason is how the reason of a blacklist entry begins if an opt-out added the entry. The person's words
// follow.
const OptOutReason = "Disiscrizione: "
