package puntuale

import (
	"fmt"
	"math/bits"
	"time"
)

// EventType says what happened. The database contains the type's number, so the number never changes. The same number
// is the type's bit in an [EventSet].
type EventType int8

const (
	EventMessageSent EventType = 1 + iota
	EventMessageDelivered
	EventMessageRead
	EventMessageFailed
	EventMessageUncertain // happens once, when the message becomes uncertain
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
	EventWebhookTest        // goes only to the webhook that is tested
	EventMessageRescheduled // a booking's change replaced the message
	EventBookingCreated     // also when it is open again after a cancellation
	EventBookingMoved
	EventBookingConfirmed
	EventBookingCancelled
	EventBookingArrived
	EventBookingNoShow
	EventBlacklistAdded
	EventBlacklistRemoved
	EventBookingAnswered // a person answered a question about a booking
	EventSessionHealth   // what Meta says about the number or the business of an Official session changed
	EventNumberChanged
	EventLinkClicked // a person followed a link of the message for the first time
	EventBudgetLow   // most of the budget of the month is used
	EventBudgetOut   // the budget of the month is used up, and marketing waits
	EventFileKept    // the file of a reply became a file of the client
	EventFileFailed  // the file of a reply is not kept, and there is no further attempt
)

var eventNames = [...]string{
	"message.sent", "message.delivered", "message.read", "message.failed", "message.uncertain", "message.cancelled", "message.blacklisted",
	"reply.received", "consent.changed", "session.online", "session.offline", "session.unlinked", "session.restricted",
	"campaign.started", "campaign.paused", "campaign.done", "automation.fired",
	"account.cap_80", "account.cap_reached", "account.credit_low", "account.credit_out", "account.expiring", "account.expired",
	"template.changed", "webhook.disabled", "webhook.test",
	"message.rescheduled", "booking.created", "booking.moved", "booking.confirmed", "booking.cancelled", "booking.arrived", "booking.no_show",
	"blacklist.added", "blacklist.removed", "booking.answered", "session.health", "contact.changed_number", "link.clicked",
	"account.budget_low", "account.budget_out", "file.kept", "file.failed",
}

func (t EventType) String() string {
	if t < 1 || int(t) > len(eventNames) {
		return fmt.Sprintf("EventType(%d)", int8(t))
	}
	return eventNames[t-1]
}

// OfBooking reports whether the event says what became of a booking.
func (t EventType) OfBooking() bool {
	return t >= EventBookingCreated && t <= EventBookingNoShow || t == EventBookingAnswered
}

// ParseEventType reads a name, such as "message.sent". It refuses webhook.test, because nobody may subscribe to it.
func ParseEventType(name string) (EventType, error) {
	for i, n := range eventNames {
		if t := EventType(i + 1); n == name && t != EventWebhookTest {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%q is not a type of event", name)
}

// EventSet is a set of types, with one bit for each type. The database contains it as a number.
type EventSet int64

// AllEvents has every type that a caller can subscribe to.
const AllEvents EventSet = 1<<(EventFileFailed+1) - 2 - 1<<EventWebhookTest

// EventsOf returns the set of the given types.
func EventsOf(types ...EventType) (s EventSet) {
	for _, t := range types {
		s |= 1 << t
	}
	return s
}

// Has reports whether the set has the type.
func (s EventSet) Has(t EventType) bool { return s&(1<<t) != 0 }

// Types returns the types in the set, sorted by number.
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
	// KeepEvents is how long events and deliveries are kept. A feed turns off if nobody reads it for this long.
	KeepEvents = 30 * 24 * time.Hour
	// MaxEvent is the largest body of an event, in bytes.
	MaxEvent = 20 << 10
	// MaxReference is the longest reference that a caller may give, in characters.
	MaxReference = 255
)

// Event is something that happened to a client. Webhooks and the feed report it to the client's programs. The
// transaction that stores the fact also writes the event, without a number. Later a numberer sets Seq (see
// [OutboxStore.NumberEvents]), so that readers can follow the events in order.
type Event struct {
	Client ClientID
	// Seq grows with each event of the client. It has gaps only after a restore or a failover. After a reader saw an
	// event, no event with a smaller Seq appears.
	Seq     int64
	Type    EventType
	At      time.Time
	Subject int64 // id of the message, reply, consent entry, session, campaign, template, webhook or booking; 0: the account, or a person who was erased
	// Detail is a JSON object with facts that are not in the subject's row. Its members have the names of the wire. "":
	// no facts. If the object has a member reason, that member is the stored form of a [Reason].
	Detail string

	// The fields below are the subject. The store reads the subject each time it returns the event. Therefore an
	// erasure also removes the person's data from old events. nil: the subject is gone, or has another type.
	Message *MessageDetail
	Reply   *Reply
	Consent *Consent
	Booking *Booking // only its reference and phone; Detail contains the state
}
