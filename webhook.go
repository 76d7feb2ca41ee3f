package puntuale

import (
	"context"
	"strconv"
	"time"
)

// WebhookID names a webhook of a client or of a partner.
type WebhookID int64

func (id WebhookID) String() string { return strconv.FormatInt(int64(id), 10) }

const (
	// MaxWebhooks is how many webhooks a client may have. A partner may have the same number.
	MaxWebhooks = 10
	// WebhookOverlap is how long, after a rotation, the earlier secret also signs.
	WebhookOverlap = 24 * time.Hour
	// WebhookWithin is how long a receiver may take to answer.
	WebhookWithin = 15 * time.Second
	// WebhookAtOnce is how many deliveries one webhook gets at the same time. A receiver that answers very quickly gets
	// twice this number.
	WebhookAtOnce = 8
	// DisableWebhookAfter: a webhook is disabled if no attempt succeeded for this long.
	DisableWebhookAfter = 5 * 24 * time.Hour
	// MaxWebhookAnswer is how many bytes of a receiver's answer are stored.
	MaxWebhookAnswer = 1 << 10
)

// WebhookRetries has the wait after each failed attempt, without the jitter. After the last wait comes one more
// attempt; if it fails, the delivery is given up.
var WebhookRetries = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Webhook is an address that gets the events of a client, or of all clients of a partner.
type Webhook struct {
	ID          WebhookID
	Client      ClientID  // 0: the webhook belongs to a partner
	Partner     PartnerID // the partner, or the client's partner
	URL         string
	Types       EventSet  // the types of events that the webhook wants
	Session     SessionID // only events of this session; 0: events of all sessions
	Description string
	Active      bool
	Disabled    time.Time // when it was disabled, because it kept failing or answered 410; zero: it is not disabled
	Reason      Reason    // why the webhook was disabled
	Created     time.Time
	LastSuccess time.Time // when an attempt last succeeded; zero: no attempt succeeded yet
	FailingFrom time.Time // when the first failure since the last success happened; zero: the last attempt did not fail
}

// WebhookPatch changes a webhook. A nil member changes nothing. Active true also enables a disabled webhook.
type WebhookPatch struct {
	URL         *string
	Types       *EventSet
	Session     *SessionID
	Description *string
	Active      *bool
}

// Apply returns the webhook after a patch.
func (w Webhook) Apply(p WebhookPatch) Webhook {
	if p.URL != nil {
		w.URL = *p.URL
	}
	if p.Types != nil {
		w.Types = *p.Types
	}
	if p.Session != nil {
		w.Session = *p.Session
	}
	if p.Description != nil {
		w.Description = *p.Description
	}
	if p.Active != nil {
		w.Active = *p.Active
		if w.Active {
			w.Disabled, w.Reason, w.FailingFrom = time.Time{}, Reason{}, time.Time{}
		}
	}
	return w
}

// SealedWebhook is the argument purpose of Vault.Seal for a webhook's secrets, and for the token of a link to Chatwoot.
const SealedWebhook = "webhook"

// SealPlace returns the place name that the vault needs to seal the webhook's secrets. It names the owner and the time
// of creation.
func (w *Webhook) SealPlace() string {
	return "webhook of " + w.Client.String() + ", " + strconv.FormatInt(w.Created.UnixMicro(), 10)
}

// WebhookSecret contains the secrets that sign a webhook's bodies. Both secrets are sealed.
type WebhookSecret struct {
	Present      []byte
	FormerSecret []byte    // the earlier secret, which also signs, until the time Until; nil: there is none
	Until        time.Time // zero if FormerSecret is nil
}

// DeliveryState is the progress of a delivery. The database contains the numbers.
type DeliveryState int8

const (
	DeliveryWaiting DeliveryState = iota // waits for its first or next attempt
	DeliveryDone                         // a receiver accepted the event
	DeliveryFailed                       // all attempts failed, or the delivery was given up
)

func (s DeliveryState) String() string { return [...]string{"waiting", "delivered", "failed"}[s] }

// Delivery is one event on its way to one webhook.
type Delivery struct {
	Webhook  WebhookID
	Client   ClientID // client of the event
	Seq      int64    // number of the event
	Type     EventType
	At       time.Time // when the event happened
	State    DeliveryState
	Attempts int
	Next     time.Time     // time of the next attempt, while the delivery waits
	Tried    time.Time     // time of the last attempt; zero: none yet
	Status   int           // HTTP status of the last answer; 0: there was no answer
	Took     time.Duration // time until the last answer, or until the attempt was given up
	// Answer is the beginning of the last answer, at most [MaxWebhookAnswer] bytes. If Status is 0, Answer is the
	// stored form of the [Reason] why there was no answer.
	Answer string
}

// DeliveryFilter chooses deliveries for a list.
type DeliveryFilter struct {
	State *DeliveryState // nil: deliveries in every state
}

// Replay chooses the deliveries of a webhook that meet all of its conditions. The chosen deliveries start again with a
// first attempt, and their events keep their ids.
type Replay struct {
	From, To time.Time // range of the events' times; a zero time sets no limit
	Failed   bool      // only deliveries that were given up
	Seqs     []int64   // only the events of Client with these numbers; nil: all events
	Client   ClientID  // client of the events in Seqs; only used with Seqs
}

// WebhookStore stores the webhooks of one client, or of one partner. A webhook of another owner is missing:
// CodeNotFound.
type WebhookStore interface {
	// CreateWebhook stores a new webhook. The argument o may be nil; its function Answer gets the WebhookID. Codes:
	// quota_reached; not_found (the session).
	CreateWebhook(ctx context.Context, w Webhook, secret []byte, now time.Time, o *Idempotency) (WebhookID, error)
	Webhooks(ctx context.Context) ([]Webhook, error)            // sorted by id; at most MaxWebhooks
	Webhook(ctx context.Context, id WebhookID) (Webhook, error) // code not_found
	// UpdateWebhook changes a webhook. Codes: not_found (the webhook, or the session).
	UpdateWebhook(ctx context.Context, id WebhookID, p WebhookPatch, now time.Time) (Webhook, error)
	DeleteWebhook(ctx context.Context, id WebhookID) error // code not_found; deliveries that wait are never sent
	// WebhookSecret returns the sealed secrets. Codes: not_found.
	WebhookSecret(ctx context.Context, id WebhookID) (WebhookSecret, error)
	// RotateWebhook replaces the present secret with the secret next. The earlier secret also signs, but only until
	// oldValidUntil. Codes: not_found.
	RotateWebhook(ctx context.Context, id WebhookID, next []byte, oldValidUntil time.Time) error
}

// DeliveryStore lists the deliveries of one tenant's webhooks.
type DeliveryStore interface {
	// Deliveries lists a webhook's deliveries, newest first. Codes: not_found (the webhook); invalid (the cursor).
	Deliveries(ctx context.Context, id WebhookID, f DeliveryFilter, p Page) ([]Delivery, string, error)
	// Delivery returns a delivery with its event. Codes: not_found.
	Delivery(ctx context.Context, id WebhookID, client ClientID, seq int64) (Delivery, Event, error)
	// Replay makes deliveries start again with a first attempt. It returns how many deliveries these are. Codes:
	// not_found (the webhook).
	Replay(ctx context.Context, id WebhookID, r Replay, now time.Time) (int, error)
}

// DueDelivery is a delivery whose next attempt is due.
type DueDelivery struct {
	Delivery
	Event Event
}

// WebhookTarget is what a delivery needs of its webhook: the address and the secrets.
type WebhookTarget struct {
	Webhook
	Secret   WebhookSecret
	Chatwoot ChatwootInbox // zero: the webhook is no link to Chatwoot
}

// Reasons why a webhook was disabled.
const (
	ReasonWebhookGone    ReasonCode = "webhook.gone"    // the receiver answered 410
	ReasonWebhookFailing ReasonCode = "webhook.failing" // no attempt succeeded for [DisableWebhookAfter]
)

// FaultWebhookTooMany refuses a webhook beyond [MaxWebhooks].
const FaultWebhookTooMany ReasonCode = "webhook.too_many"

// Reasons why a receiver gave no answer, as a [Delivery] contains them.
const (
	ReasonWebhookAddress     ReasonCode = "webhook.address"     // the host name is unknown, or this server may not connect to its addresses
	ReasonWebhookUnreachable ReasonCode = "webhook.unreachable" // the connection failed
	ReasonWebhookCertificate ReasonCode = "webhook.certificate"
	ReasonWebhookTimeout     ReasonCode = "webhook.timeout"
	ReasonWebhookClosed      ReasonCode = "webhook.closed" // the connection ended without an answer
	ReasonAnswerTooLarge     ReasonCode = "webhook.answer_too_large"
	ReasonWebhookGarbage     ReasonCode = "webhook.garbage" // the answer is not HTTP
	ReasonWebhookSecret      ReasonCode = "webhook.secret"  // this server cannot open the secret
)

// Reasons why an address is refused before anything is sent to it.
const (
	FaultWebhookNotHTTPS ReasonCode = "webhook.not_https"
	FaultWebhookPrivate  ReasonCode = "webhook.private"
)

// WebhookRequest is what a receiver gets by POST.
type WebhookRequest struct {
	Header []HeaderField
	Body   []byte
}

// HeaderField is one line of a header.
type HeaderField struct{ Name, Value string }

// DeliveryResult is the result of an attempt.
type DeliveryResult struct {
	Webhook      WebhookID
	Client       ClientID
	Seq          int64
	State        DeliveryState
	At           time.Time // time of the attempt
	Next         time.Time // time of the next attempt, if the delivery still waits
	Status       int
	Took         time.Duration
	Answer       string
	ReceiverGone bool // the receiver answered 410
	NoCall       bool // the event needed no call, so the result says nothing about the receiver
}

// IsPort reports whether a text is the port of an address that may be called, or "": the address names none.
func IsPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

// StorableAnswer returns the beginning of a receiver's answer, without characters that a database refuses.
func StorableAnswer(text string) string { return storable(text, MaxWebhookAnswer) }

// MaxBacklog is where the counts of an [OutboxBacklog] stop.
const MaxBacklog = 100_000

// OutboxBacklog counts the facts that have no number yet, and the deliveries that wait.
type OutboxBacklog struct {
	Unnumbered int
	Waiting    int           // number of waiting deliveries
	Oldest     time.Duration // how long the oldest due delivery has waited
	Event      time.Duration // age of the oldest event that an active webhook's receiver has not accepted, also between two attempts
	Disabled   int           // number of disabled webhooks
}
