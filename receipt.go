package puntuale

import (
	"context"
	"time"
)

// ReceiptKind is what the network tells of a message that it took.
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
	Session SessionID // whose network told it: a message of another session is left alone
	Token   int64     // of the attempt that it speaks of
	Kind    ReceiptKind
	At      time.Time
	Reason  Reason // with EvidenceFailed
	Detail  Reason // the network's words and ids
	Block   string // with EvidenceFailed: why the recipient goes on the blacklist, "" if not
	Charge  Charge // zero: the network did not say what it bills
}

// Charge is what the network says of a message's price.
type Charge struct {
	MessageKind
	Billable bool   // else it was for nothing
	Phone    string // of the recipient, "" where it was not told; the country comes from it
}

// DeliveryStatus are what is known of a message after evidence. Each moment is when the first evidence of its kind came.
type DeliveryStatus struct{ Sent, Delivered, Read, Failed time.Time }

// With adds evidence. The order in which evidence is added does not matter, nor how often.
func (r DeliveryStatus) With(k ReceiptKind, at time.Time) DeliveryStatus {
	moment := map[ReceiptKind]*time.Time{ReceiptSent: &r.Sent, ReceiptDelivered: &r.Delivered, ReceiptRead: &r.Read, ReceiptFailed: &r.Failed}[k]
	if moment != nil && (moment.IsZero() || at.Before(*moment)) {
		*moment = at
	}
	return r
}

// Verdict is what the evidence amounts to, 0 for nothing: delivery always wins, then failure. That a message left the
// network's servers outweighs only that nobody knew.
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

// InboundMessage is one message that a person wrote to a session. What they wrote is not kept.
type InboundMessage struct {
	Client  ClientID
	Session SessionID
	Phone   string // "+…", or any other name that the network has for them
	At      time.Time
}

// Preference is a person's wish about what a client may send.
type Preference struct {
	Client  ClientID
	Session SessionID
	Phone   string // as in [InboundMessage]
	Mark    string // of the phone; see [BlacklistEntry]
	Stop    bool   // nothing more; else: as before again
	At      time.Time
	Reason  string // with Stop: the blacklist's, the proof
}

// PreferenceReason begins the reason of what a preference puts on the blacklist: only that is taken out by another one.
const PreferenceReason = "Preferenza: "

// Alias is another name by which a session's network knows a person.
type Alias struct {
	Client  ClientID
	Session SessionID
	Name    string // "+…", where the network writes the number in another way, or an id that is no number
	Phone   string // the recipient as messages have it
}

// InboundBatch is what the network told of one session at once.
type InboundBatch struct {
	Aliases     []Alias
	Evidence    []DeliveryReceipt
	Heard       []InboundMessage
	Preferences []Preference
	Templates   []TemplateEvent // of the business of the session
}

// IntakeStore keeps what comes back from networks. All of it may be told again without an effect.
type IntakeStore interface {
	// KeepEvidence notes receipts, and makes messages COMPLETED or FAILED as [DeliveryStatus.Verdict] says. It changes
	// messages that are open or uncertain; a failure only by the token of the present attempt. It also changes
	// COMPLETED ones that the network gave up, and FAILED ones that it delivered. Cancelled messages stay as they are.
	// The charge that comes with a delivery is counted for the message's campaign, once a message. A credit is given
	// back with a failure, and taken again with a delivery. Messages that are not there, or another session's, are
	// passed over; it returns how many.
	KeepEvidence(ctx context.Context, now time.Time, e []DeliveryReceipt) (unknown int, err error)

	// KeepHeard opens windows for free text, and stops what was started before the person wrote by sequences that stop on
	// a reply. It returns how many messages were cancelled.
	KeepHeard(ctx context.Context, now time.Time, h []InboundMessage) (cancelled int, err error)

	// KeepPreference adds to the blacklist, or takes out what an earlier preference added. A preference that is older
	// than the last one of the person changes nothing. It reports whether it did.
	KeepPreference(ctx context.Context, now time.Time, p Preference) (bool, error)

	// KeepAliases notes by which other names the network knows people.
	KeepAliases(ctx context.Context, all []Alias) error

	// Recipients returns all names of a person that the network calls by one. That name comes first, then those that
	// aliases connect with it.
	Recipients(ctx context.Context, client ClientID, session SessionID, name string) ([]string, error)

	// TellNetworkTemplate is the method of [NetworkTemplateStore].
	TellNetworkTemplate(ctx context.Context, n TemplateEvent) error
}
