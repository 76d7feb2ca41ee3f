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
	// MaxWebhooks is how many webhooks a client may have, and as many a partner.
	MaxWebhooks = 10
	// WebhookOverlap is how long the secret before the present one signs too.
	WebhookOverlap = 24 * time.Hour
	// WebhookWithin is how long a receiver may take to answer.
	WebhookWithin = 15 * time.Second
	// WebhookAtOnce is how many deliveries one webhook gets at the same time. A receiver that answers very quickly gets twice as many.
	WebhookAtOnce = 8
	// WebhookPatience is how long a webhook may be without a success before it is disabled.
	WebhookPatience = 5 * 24 * time.Hour
	// MaxWebhookAnswer is how much of a receiver's answer is kept, in bytes.
	MaxWebhookAnswer = 1 << 10
)

// WebhookRetries are the waits after each failed attempt, before jitter. After the last one the delivery is given up.
var WebhookRetries = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Webhook is an address that gets a client's events, or those of all clients of a partner.
type Webhook struct {
	ID          WebhookID
	Client      ClientID // 0: a partner's
	URL         string
	Types       EventSet  // what it wants
	Session     SessionID // only events of this session; 0: all
	Description string
	Active      bool
	Disabled    time.Time // when it was disabled for its failures, or by 410; zero: it was not
	Reason      Reason    // why it was disabled
	Created     time.Time
	LastSuccess time.Time // zero: none yet
	FailingFrom time.Time // the first failure since the last success; zero: it does not fail
}

// WebhookPatch is a change of a webhook. nil leaves a member as it is. Active true also enables a disabled one.
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

// SealedWebhook is the purpose for which a webhook's secrets are sealed.
const SealedWebhook = "webhook"

// SealPlace is the place of a webhook's secrets: its owner, and the moment when it was made.
func (w *Webhook) SealPlace() string {
	return "webhook of " + w.Client.String() + ", " + strconv.FormatInt(w.Created.UnixMicro(), 10)
}

// WebhookSecret is what signs a webhook's bodies. Stores keep both sealed.
type WebhookSecret struct {
	Present []byte
	Before  []byte    // signs too until Until; nil: there is none
	Until   time.Time // zero where Before is nil
}

// DeliveryState says how far a delivery is. The numbers are what stores keep.
type DeliveryState int8

const (
	DeliveryWaiting DeliveryState = iota // for its first attempt, or the next
	DeliveryDone                         // a receiver took it
	DeliveryFailed                       // given up
)

func (s DeliveryState) String() string { return [...]string{"waiting", "delivered", "failed"}[s] }

// Delivery is one event on its way to one webhook.
type Delivery struct {
	Webhook  WebhookID
	Client   ClientID // of the event
	Seq      int64    // of the event
	Type     EventType
	At       time.Time // of the event
	State    DeliveryState
	Attempts int
	Next     time.Time     // of the next attempt, while it waits
	Tried    time.Time     // the last attempt; zero: none yet
	Status   int           // of the last answer; 0: there was none
	Took     time.Duration // until the last answer, or until it was given up
	Answer   string        // the beginning of the last answer, at most [MaxWebhookAnswer] bytes; where Status is 0, the stored form of a [Reason]: why there was none
}

// DeliveryFilter says which deliveries a list has.
type DeliveryFilter struct {
	State *DeliveryState // nil: all
}

// Replay says which deliveries of a webhook wait again, from their first attempt on. The event keeps its id.
type Replay struct {
	From, To time.Time // of the events; zero: from the first, to the last
	Failed   bool      // only those that were given up
	Seqs     []int64   // only these events of Client; nil: all
	Client   ClientID  // of Seqs
}

// WebhookStore keeps the webhooks of one client, or of one partner. A webhook of another is CodeNotFound.
type WebhookStore interface {
	// CreateWebhook; o may be nil, and its Answer gets the WebhookID. Codes: quota_reached; not_found (the session).
	CreateWebhook(ctx context.Context, w Webhook, secret []byte, now time.Time, o *Idempotency) (WebhookID, error)
	Webhooks(ctx context.Context) ([]Webhook, error)            // by id; at most MaxWebhooks
	Webhook(ctx context.Context, id WebhookID) (Webhook, error) // not_found
	// UpdateWebhook. Codes: not_found (it, or the session).
	UpdateWebhook(ctx context.Context, id WebhookID, p WebhookPatch, now time.Time) (Webhook, error)
	DeleteWebhook(ctx context.Context, id WebhookID) error // not_found; what waits is not delivered any more
	// WebhookSecret returns the sealed secrets. Codes: not_found.
	WebhookSecret(ctx context.Context, id WebhookID) (WebhookSecret, error)
	// RotateWebhook makes next the secret; the present one signs too until the moment. Codes: not_found.
	RotateWebhook(ctx context.Context, id WebhookID, next []byte, until time.Time) error
}

// DeliveryStore lists the deliveries of one tenant's webhooks.
type DeliveryStore interface {
	// Deliveries lists a webhook's deliveries, newest first. Codes: not_found (the webhook); invalid (the cursor).
	Deliveries(ctx context.Context, id WebhookID, f DeliveryFilter, p Page) ([]Delivery, string, error)
	// Delivery returns a delivery with its event. Codes: not_found.
	Delivery(ctx context.Context, id WebhookID, client ClientID, seq int64) (Delivery, Event, error)
	// Replay lets deliveries wait again and returns how many. Codes: not_found (the webhook).
	Replay(ctx context.Context, id WebhookID, r Replay, now time.Time) (int, error)
}

// DueDelivery is a delivery that may be attempted now.
type DueDelivery struct {
	Delivery
	Event Event
}

// WebhookTarget is where a webhook's deliveries go.
type WebhookTarget struct {
	Webhook
	Secret WebhookSecret
}

// Why a webhook was disabled.
const (
	ReasonWebhookGone    ReasonCode = "webhook.gone"    // its receiver answered 410
	ReasonWebhookFailing ReasonCode = "webhook.failing" // there was no success for [WebhookPatience]
)

// FaultWebhookTooMany refuses a webhook beyond [MaxWebhooks].
const FaultWebhookTooMany ReasonCode = "webhook.too_many"

// Why a receiver gave no answer, as [Delivery] keeps it.
const (
	ReasonWebhookAddress     ReasonCode = "webhook.address"     // the name is unknown, or none of its addresses may be reached
	ReasonWebhookUnreachable ReasonCode = "webhook.unreachable" // the connection failed
	ReasonWebhookCertificate ReasonCode = "webhook.certificate"
	ReasonWebhookTimeout     ReasonCode = "webhook.timeout"
	ReasonWebhookClosed      ReasonCode = "webhook.closed"  // the connection ended without an answer
	ReasonWebhookGarbage     ReasonCode = "webhook.garbage" // the answer is not HTTP
	ReasonWebhookSecret      ReasonCode = "webhook.secret"  // this server cannot open the secret
)

// Why an address is refused before anything is sent to it.
const (
	FaultWebhookNotHTTPS ReasonCode = "webhook.not_https"
	FaultWebhookPrivate  ReasonCode = "webhook.private"
)

// WebhookCaller makes attempts and stores nothing. Many goroutines may use it at once.
type WebhookCaller interface {
	// Call makes one attempt. It never fails: the result says what went wrong.
	Call(ctx context.Context, t WebhookTarget, e Event) DeliveryResult
	// Request returns what an attempt at the moment sends. Secret.Before signs too, until Secret.Until. The error says that a secret
	// cannot be opened.
	Request(t WebhookTarget, e Event, at time.Time) (WebhookRequest, error)
	// Refuses says why no attempt can reach the address, as far as the address alone tells; "" if one may.
	Refuses(address string) ReasonCode
}

// WebhookRequest is what a receiver gets by POST.
type WebhookRequest struct {
	Header []HeaderField
	Body   []byte
}

// HeaderField is one line of a header.
type HeaderField struct{ Name, Value string }

// DeliveryResult is how an attempt ended.
type DeliveryResult struct {
	Webhook WebhookID
	Client  ClientID
	Seq     int64
	State   DeliveryState
	At      time.Time // of the attempt
	Next    time.Time // while it waits
	Status  int
	Took    time.Duration
	Answer  string
	Gone    bool // the receiver answered 410
}

// OutboxStore is what the sender of webhooks needs.
type OutboxStore interface {
	// NumberEvents gives numbers to events that have none, and makes their deliveries, in several transactions. It returns how many got
	// one. Any number of nodes may call it at once.
	NumberEvents(ctx context.Context, now time.Time) (int, error)

	// OwnWebhooks makes the node the owner of active webhooks that have deliveries due and no living owner, and returns all targets that it
	// owns. Only the owner sends for a webhook. Codes: as [Fleet].
	OwnWebhooks(ctx context.Context, node NodeID, now time.Time) ([]WebhookTarget, error)

	// DueDeliveries returns, for each of the webhooks, deliveries due by now, the first due first, at most limit each, with their
	// events. Those that skip names are left out: they are being attempted.
	DueDeliveries(ctx context.Context, webhooks []WebhookID, now time.Time, limit int, skip func(Delivery) bool) ([]DueDelivery, error)

	// EndAttempts records attempts. A webhook without a success for [WebhookPatience], or that is gone, is disabled, with an event.
	EndAttempts(ctx context.Context, now time.Time, all []DeliveryResult) error

	// Backlog measures what waits.
	OutboxBacklog(ctx context.Context, now time.Time) (OutboxBacklog, error)
}

// StorableAnswer is the beginning of a receiver's answer, as every database can keep it.
func StorableAnswer(text string) string { return storable(text, MaxWebhookAnswer) }

// MaxBacklog is up to how many facts and deliveries a backlog counts.
const MaxBacklog = 100_000

// OutboxBacklog is what waits to be told.
type OutboxBacklog struct {
	Unnumbered int
	Waiting    int           // deliveries
	Oldest     time.Duration // how long the oldest due delivery waits
	Disabled   int           // webhooks
}
