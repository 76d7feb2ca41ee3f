package event

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Events stores the events of all clients. It has what the sender of webhooks needs.
type Events struct {
	db     *engine.DB
	number *engine.Kind
	end    *engine.Kind

	// resumeAfter is used only on PostgreSQL. The next transaction numbers the facts of the clients after this client, so
	// that each client is served. 0: the transaction begins with the first client.
	resumeAfter atomic.Int64

	mu     sync.Mutex
	floors map[puntuale.WebhookID]dueCursor
}

// New returns the Events of a database.
func New(db *engine.DB) *Events {
	s := &Events{db: db, number: engine.NewSingle("number", engine.PriorityFeed), end: engine.NewSingle("deliver", engine.PriorityFeed)}
	for _, k := range []*engine.Kind{s.number, s.end} {
		k.Check, k.Background = engine.RunAgain, true // may run twice: a second run does only what the first run did not do
	}
	return s
}

// Account gives access to the webhooks of one client or one partner, and to no others.
type Account struct {
	*Events
	client  puntuale.ClientID
	partner puntuale.PartnerID // set only if client is 0
}

// OfClient gives access to a client's webhooks and feed.
func (s *Events) OfClient(id puntuale.ClientID) ClientEvents {
	return ClientEvents{Account{Events: s, client: id}}
}

// OfPartner gives access to a partner's webhooks, but not to the webhooks of the partner's clients.
func (s *Events) OfPartner(id puntuale.PartnerID) Account { return Account{Events: s, partner: id} }

// ClientEvents gives access to one client's webhooks and feed.
type ClientEvents struct{ Account }

// owner returns the account's number for queues and slots: the client's id, or the negative id of the partner.
func (s Account) owner() int64 {
	if s.client != 0 {
		return int64(s.client)
	}
	return -int64(s.partner)
}

// id returns the parameter $1 for the condition that ownerCondition returns.
func (s Account) id() int64 { return max(int64(s.client), int64(s.partner)) }

// ownerCondition returns the condition for the account's webhooks, in a statement in which w is the table webhook. $1
// is the result of id. The webhooks of links to Chatwoot do not fulfil it.
func (s Account) ownerCondition() string {
	if s.client != 0 {
		return ` where w.client_id = $1 and w.client_id <> 0 and not exists (select 1 from chatwoot_link l where l.webhook_id = w.id)`
	}
	return ` where w.client_id = 0 and w.partner_id = $1`
}

const webhookColumns = `w.id, w.client_id, w.partner_id, w.url, w.types, w.session_id, w.description, w.active, w.disabled_at, w.reason, w.created_at, w.succeeded_at, w.failing_at`

func webhookFields(w *puntuale.Webhook) []any {
	return []any{&w.ID, &w.Client, &w.Partner, &w.URL, &w.Types, &w.Session, &w.Description, engine.ScanBool(&w.Active), engine.ScanTime(&w.Disabled),
		engine.ScanReason(&w.Reason), engine.ScanTime(&w.Created), engine.ScanTime(&w.LastSuccess), engine.ScanTime(&w.FailingFrom)}
}

const secretColumns = `w.secret, w.secret_before, w.secret_until`

func secretFields(s *puntuale.WebhookSecret) []any {
	return []any{&s.Present, &s.FormerSecret, engine.ScanTime(&s.Until)}
}

func (s Account) Webhooks(ctx context.Context) ([]puntuale.Webhook, error) {
	all, err := engine.QueryAll(ctx, s.db.CallReads, `select `+webhookColumns+` from webhook w`+s.ownerCondition()+` order by w.id`, []any{s.id()},
		func(r engine.Row, w *puntuale.Webhook) error { return r.Scan(webhookFields(w)...) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list webhooks: %w", err))
	}
	return all, nil
}

func (s Account) Webhook(ctx context.Context, id puntuale.WebhookID) (w puntuale.Webhook, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select `+webhookColumns+` from webhook w`+s.ownerCondition()+` and w.id = $2`, []any{s.id(), id}, webhookFields(&w)...)
	return w, engine.FoundOr(found, err, puntuale.NoWebhook)
}

func (s Account) WebhookSecret(ctx context.Context, id puntuale.WebhookID) (secret puntuale.WebhookSecret, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select `+secretColumns+` from webhook w`+s.ownerCondition()+` and w.id = $2`, []any{s.id(), id}, secretFields(&secret)...)
	if len(secret.FormerSecret) == 0 {
		secret.FormerSecret = nil
	}
	return secret, engine.FoundOr(found, err, puntuale.NoWebhook)
}

// tooMany returns the error for a webhook that would exceed the limit.
func tooMany() error {
	return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(puntuale.FaultWebhookTooMany, strconv.Itoa(puntuale.MaxWebhooks))}
}
