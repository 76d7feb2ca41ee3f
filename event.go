package puntuale

import (
	"context"
	"fmt"
	"math/bits"
	"time"
)

// EventType says what an event tells of. Its number is stored and never changes. It is also the type's bit in an [EventSet].
type EventType int8

const (
	EventMessageSent EventType = 1 + iota
	EventMessageDelivered
	EventMessageRead
	EventMessageFailed
	EventMessageUncertain // once, when the message becomes uncertain
	EventMessageCancelled
	EventMessageBlacklisted
	EventReplyReceived
	EventConsentChanged
	EventSessionOnline
	EventSessionOffline
	EventSessionUnlinked
	EventSessionRestricted
	EventCampaignStarted
	EventCampaignPaused
	EventCampaignDone
	EventAutomationFired
	EventCap80
	EventCapReached
	EventCreditLow
	EventCreditOut
	EventAccountExpiring
	EventAccountExpired
	EventTemplateChanged
	EventWebhookDisabled
	EventWebhookTest // only to the webhook that is tested
)

var eventNames = [...]string{
	"message.sent", "message.delivered", "message.read", "message.failed", "message.uncertain", "message.cancelled", "message.blacklisted",
	"reply.received", "consent.changed", "session.online", "session.offline", "session.unlinked", "session.restricted",
	"campaign.started", "campaign.paused", "campaign.done", "automation.fired",
	"account.cap_80", "account.cap_reached", "account.credit_low", "account.credit_out", "account.expiring", "account.expired",
	"template.changed", "webhook.disabled", "webhook.test",
}

func (t EventType) String() string {
	if t < 1 || int(t) > len(eventNames) {
		return fmt.Sprintf("EventType(%d)", int8(t))
	}
	return eventNames[t-1]
}

// ParseEventType reads a name, such as "message.sent". Nobody can ask for webhook.test.
func ParseEventType(name string) (EventType, error) {
	for i, n := range eventNames {
		if t := EventType(i + 1); n == name && t != EventWebhookTest {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%q is not a type of event", name)
}

// EventSet is a set of types: a bit for each. Stores keep it as a number.
type EventSet int64

// AllEvents has every type that somebody can ask for.
const AllEvents EventSet = 1<<EventWebhookTest - 2

// EventsOf returns the set of the types.
func EventsOf(types ...EventType) (s EventSet) {
	for _, t := range types {
		s |= 1 << t
	}
	return s
}

// Has reports whether the set has the type.
func (s EventSet) Has(t EventType) bool { return s&(1<<t) != 0 }

// Types returns the set's types by their numbers.
func (s EventSet) Types() []EventType {
	all := make([]EventType, 0, bits.OnesCount64(uint64(s)))
	for t := EventType(1); int(t) <= len(eventNames); t++ {
		if s.Has(t) {
			all = append(all, t)
		}
	}
	return all
}

const (
	// KeepEvents is how long events and deliveries are kept. A feed that nobody reads for that long is off.
	KeepEvents = 30 * 24 * time.Hour
	// MaxEvent is the longest body of an event, in bytes.
	MaxEvent = 20 << 10
	// MaxReference is the longest reference of a caller, in characters.
	MaxReference = 255
)

// Event is something that happened to a client, as its programs are told. The transaction of the fact writes it without a
// number; a numberer gives Seq later, in an order that readers can follow.
type Event struct {
	Client  ClientID
	Seq     int64 // grows with each event of the client, with gaps. A reader never passes one that commits later
	Type    EventType
	At      time.Time
	Subject int64 // the id of the message, reply, consent entry, session, campaign, template or webhook; 0: the account
	// Detail is a JSON object with what the subject's row does not tell, by the names of the wire; "": nothing. Its member reason, if any,
	// is the stored form of a [Reason].
	Detail string

	// The subject, read when the event is told. So an erasure reaches it. nil: it is gone, or of another type.
	Message *MessageDetail
	Reply   *Reply
	Consent *Consent
}

// EventStore is a client's feed.
type EventStore interface {
	// Events returns events of the types after a number, by number, at most limit, and the number to go on from. It turns the feed on, and
	// keeps it on for [KeepEvents]. A feed that was off begins now: earlier events were not kept.
	Events(ctx context.Context, after int64, types EventSet, limit int, now time.Time) (all []Event, next int64, err error)
}
