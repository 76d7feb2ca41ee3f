package puntuale

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ReceiptKind is what the network reports about a message that it accepted.
type ReceiptKind int8

const (
	ReceiptSent      ReceiptKind = iota + 1 // it left the network's own servers
	ReceiptDelivered                        // it is on the recipient's device
	ReceiptRead                             // the recipient has seen it
	ReceiptFailed                           // it was given up after all
)

// DeliveryReceipt is one thing that the network tells of one message. It may come in any order, late, and more than once.
type DeliveryReceipt struct {
	MessageRef
	Session SessionID // the session that got the receipt; messages of other sessions do not change
	Token   int64     // the token of the attempt that the receipt is about
	Kind    ReceiptKind
	At      time.Time
	Reason  Reason // with EvidenceFailed
	Detail  Reason // the network's words and ids
	Charge  Charge // zero: the network did not say what it bills
}

// Charge is what the network says of a message's price.
type Charge struct {
	MessageKind
	Billable bool   // otherwise it was free of charge
	Phone    string // the recipient's number, which gives the country; "": not reported
}

// DeliveryStatus is what all receipts of a message say together. Each moment is when the first receipt of its kind came.
type DeliveryStatus struct{ Sent, Delivered, Read, Failed time.Time }

// With adds a receipt. Neither the order of receipts nor a repeated receipt matters.
func (r DeliveryStatus) With(k ReceiptKind, at time.Time) DeliveryStatus {
	moment := map[ReceiptKind]*time.Time{ReceiptSent: &r.Sent, ReceiptDelivered: &r.Delivered, ReceiptRead: &r.Read, ReceiptFailed: &r.Failed}[k]
	if moment != nil && (moment.IsZero() || at.Before(*moment)) {
		*moment = at
	}
	return r
}

// Verdict is what the receipts prove, 0 for nothing. Delivery always wins, then failure. A receipt that says only "sent" counts only where
// the outcome was uncertain.
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

// InboundMessage is one message that a person wrote to a session, or that the client's people wrote to them on the
// linked phone itself. Messages in groups, and the history that a network sends to a new device, do not count.
type InboundMessage struct {
	Client  ClientID
	Session SessionID
	Phone   string // the person's number "+…", or another name of the person at the network
	At      time.Time
	ID      string      // the network's; "": the message opens a window and stops sequences, and is not kept
	Own     bool        // the client's people wrote it: it opens no window and stops nothing
	Group   bool        // Phone is a group that the session writes to: the message opens its window, and is not kept
	Kind    ReplyKind   // a reaction opens a window and stops nothing
	Text    string      // a caption, too; at most [MaxReply] characters are kept
	Media   *ReplyMedia // nil: none
}

// These bound what a connector passes on of one message, in bytes.
const (
	maxReplyID    = 300
	maxReplyName  = 255
	maxReplyType  = 255
	maxReplyRef   = 8 << 10
	maxReplyBytes = 4 * MaxReply
)

// Storable returns the message with texts that every database can store, cut to the length that is kept.
func (m InboundMessage) Storable() InboundMessage {
	m.ID, m.Text = storable(m.ID, maxReplyID), storable(m.Text, maxReplyBytes)
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
		media.Name = strings.Trim(media.Name[strings.LastIndexAny(media.Name, `/\`)+1:], ". ") // it may become the name of a download
		if len(media.Ref) > maxReplyRef {
			media.Ref = nil // a real reference is never so long
		}
		m.Media = &media
	}
	return m
}

// storable is a text without NUL, of whole characters, in at most so many bytes.
func storable(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// Preference is a person's wish about what a client may send.
type Preference struct {
	Client  ClientID
	Session SessionID
	Phone   string // as in [InboundMessage]
	Stop    bool   // true: no more marketing; false: marketing is allowed again
	At      time.Time
	Reason  string // the network's words, as proof
}

// PreferenceReason begins the reason of what a preference put on the blacklist in earlier versions.
const PreferenceReason = "Preferenza: "

// Alias is another name by which a session's network knows a person.
type Alias struct {
	Client  ClientID
	Session SessionID
	Name    string // "+…", another form of the number at the network, or an id that is no number
	Phone   string // the recipient as messages have it
}

// InboundBatch has the events that the network reported of one session together.
type InboundBatch struct {
	Aliases     []Alias
	Receipts    []DeliveryReceipt
	Messages    []InboundMessage
	Preferences []Preference
	Templates   []TemplateEvent // of the business of the session
}

// TakenMessage is an inbound message on its way into the store. Phone is the name under which it is kept. Without Names, the
// store finds Names, Phone and Keep in the transaction that keeps the message.
type TakenMessage struct {
	InboundMessage
	Names  []string // every recipient that the person's name stands for
	Mark   string   // keyed hash of session, chat and ID, by which it is recognized; "": it is not kept
	Effect ReplyEffect
	Keep   KeepReplies
	Asks   func(ClientSettings) bool // reports whether the message may change consent, which comes first; nil: it does not
}

// ErrConsentFirst is the error about a message that may change consent. It is not kept.
var ErrConsentFirst = errors.New("the message may change consent, which comes first")

// ShownName is the name under which a person's messages are kept: a number, where one is known.
func ShownName(names []string) string {
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "+") }); i >= 0 {
		return names[i]
	}
	return names[0]
}

// OptOutStore is the part of the store that an intake needs for opt-outs.
type OptOutStore interface {
	// Seen reports whether a message with this mark was completely processed.
	Seen(ctx context.Context, client ClientID, mark string) (bool, error)

	// SettingsOf reads a client's settings.
	SettingsOf(ctx context.Context, client ClientID) (ClientSettings, error)

	// EnterConsent enters a change in the ledger, and changes the blacklist with it, in one transaction. A repeat with
	// the same ReplyMark returns the same answer and changes nothing.
	EnterConsent(ctx context.Context, e ConsentEntry) (ConsentResult, error)

	// CancelMarketing cancels pending marketing to the phone, in chunks, and returns how many messages.
	CancelMarketing(ctx context.Context, client ClientID, phone string, now time.Time) (int, error)

	// OpenWindows opens the windows of a message's names, so that the person may be answered before KeepInbound.
	OpenWindows(ctx context.Context, now time.Time, m TakenMessage) error
}

// OptOutReason begins the reason of what an opt-out puts on the blacklist; the person's words follow.
const OptOutReason = "Disiscrizione: "

// IntakeStore keeps what comes back from networks. A repeat of any of its calls has no effect.
type IntakeStore interface {
	OptOutStore

	// KeepReceipts notes receipts, and makes messages COMPLETED or FAILED as [DeliveryStatus.Verdict] says. It changes
	// messages that are open or uncertain; a failure only by the token of the present attempt. It also changes
	// COMPLETED ones that the network gave up, and FAILED ones that it delivered. Cancelled messages stay as they are.
	// The charge that comes with a delivery is counted for the message's campaign, once a message. A credit is given
	// back with a failure, and taken again with a delivery. It skips messages that do not exist or belong to another
	// session, and returns how many it skipped.
	KeepReceipts(ctx context.Context, now time.Time, e []DeliveryReceipt) (unknown int, err error)

	// KeepInbound opens windows for free text, and stops what was started before the person wrote by sequences that stop
	// on a reply. It keeps the message once for its mark, as the client's settings say. It returns how many messages were
	// cancelled. After an error some effects may be on disk. The same messages told again bring the others. Error:
	// ErrConsentFirst, of a message with Asks that was not taken before.
	KeepInbound(ctx context.Context, now time.Time, all []TakenMessage) (cancelled int, err error)

	// KeepAliases notes by which other names the network knows people.
	KeepAliases(ctx context.Context, all []Alias) error

	// Recipients returns all names of a person, found by one of them. That name comes first, then its aliases.
	Recipients(ctx context.Context, client ClientID, session SessionID, name string) ([]string, error)

	// TellNetworkTemplate is the method of [NetworkTemplateStore].
	TellNetworkTemplate(ctx context.Context, n TemplateEvent) error
}
