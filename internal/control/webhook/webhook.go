package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/semaphore"
)

// Config contains the parts and settings for [New]. All members except Chatwoot and Public must be set.
type Config struct {
	Tenants puntuale.TenantStore
	Vault   *auth.Vault
	Clock   clock.Clock
	Caller  Caller // sends the attempt of a test
	// Chatwoot creates the inboxes of links to Chatwoot. If it is nil, links are refused.
	Chatwoot puntuale.ChatwootCaller
	Public   string       // the server's own address, to which Chatwoot sends requests; "": none
	Logger   *slog.Logger // for faults of background work, which have no call; nil: they are not logged
}

// Webhooks executes requests about the webhooks of all clients and partners. It is safe for concurrent use.
type Webhooks struct {
	cfg   Config
	tests *semaphore.Semaphore
	feeds feedWatches
}

// New returns Webhooks.
func New(cfg Config) *Webhooks {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Webhooks{cfg: cfg, tests: semaphore.New(maxTests)}
}

// owner is the part of the store with the webhooks of one client or one partner.
type owner interface {
	puntuale.WebhookStore
	puntuale.DeliveryStore
	puntuale.IdempotencyStore
}

// Owner gives access to the webhooks of one client or of one partner.
type Owner struct {
	cfg    Config
	store  owner
	client puntuale.ClientID // 0: the webhook owner is a partner
	zone   *time.Location    // the zone of the periods in requests
	tests  *semaphore.Semaphore
	shares []semaphore.Holder // the owner's place among those that send tests
	key    string             // the caller's API key, under which answers with a secret are sealed; "": the request comes from a dashboard
}

// OfClient returns the webhooks of a client.
func (d *Webhooks) OfClient(c *control.Client, plain string) (*Owner, error) {
	zone, err := time.LoadLocation(c.Account().Zone)
	if err != nil {
		return nil, fmt.Errorf("load a client's zone: %w", err)
	}
	return &Owner{d.cfg, d.cfg.Tenants.Tenant(c.ID()), c.ID(), zone, d.tests, c.Holders(ownTests), plain}, nil
}

// OfPartner returns the webhooks of a partner. They get the events of all the partner's clients.
func (d *Webhooks) OfPartner(id puntuale.PartnerID, plain string) *Owner {
	own := []semaphore.Holder{{Key: id, Slots: semaphore.FairShare}, {Key: "own", Slots: ownTests}}
	return &Owner{d.cfg, d.cfg.Tenants.Partner(id), 0, time.UTC, d.tests, own, plain}
}

// OfOperator returns the webhooks of a client, or of a partner if client is 0, for a command of the operator.
func (d *Webhooks) OfOperator(partner puntuale.PartnerID, client puntuale.ClientID) *Owner {
	o := d.OfPartner(partner, "")
	if client != 0 {
		o.store, o.client = d.cfg.Tenants.Tenant(client), client
	}
	return o
}

// InZone returns the same owner with another zone for the periods in requests.
func (o *Owner) InZone(zone *time.Location) *Owner {
	moved := *o
	moved.zone = zone
	return &moved
}

// NewWebhook is a request to create or change a webhook. In a change, a nil member changes nothing.
type NewWebhook struct {
	URL         *string
	Types       []string // names of event types; nil: all types, or no change
	Session     *string  // id of a session; "": all sessions
	Description *string
	Active      *bool
	Faults      []puntuale.Fault // the faults that the calling package already found in the request
}

// IssuedWebhook is a webhook with its secret, which is shown only once.
type IssuedWebhook struct {
	puntuale.Webhook
	Secret string
}

// Limits of a webhook, in characters.
const (
	maxURL         = 2048
	maxDescription = 200
)

// secretPrefix is the beginning of a secret, according to the specification Standard Webhooks.
const secretPrefix = "whsec_"

const secretBytes = 32

// Codes of the faults that this file reports.
const (
	faultNotAddress     puntuale.ReasonCode = "webhook.not_address"
	faultNotType        puntuale.ReasonCode = "webhook.not_type"
	faultClientsSession puntuale.ReasonCode = "webhook.clients_session"
)

// Create creates a webhook. Codes: invalid, conflict (a call with a different body used the idempotency key),
// quota_reached.
func (o *Owner) Create(ctx context.Context, r NewWebhook, once control.Once[IssuedWebhook]) (IssuedWebhook, error) {
	f := request.Faults(r.Faults)
	keyed, clash, err := once.BeginSealed(ctx, o.store, o.key, &f)
	if err != nil {
		return IssuedWebhook{}, err
	}
	p := o.check(ctx, &f, r)
	if r.URL == nil {
		f.Add("body.url", puntuale.FaultRequired, nil)
	}
	if err := f.Err(); err != nil {
		return IssuedWebhook{}, err
	}
	if clash != nil {
		return IssuedWebhook{}, clash
	}
	w := puntuale.Webhook{Client: o.client, Types: puntuale.AllEvents, Active: true, Created: o.cfg.Clock.Now()}
	w = w.Apply(p)
	shown, sealed := o.secret(&w)
	issued := func(stored any) IssuedWebhook {
		w.ID, _ = stored.(puntuale.WebhookID)
		return IssuedWebhook{w, shown}
	}
	id, err := o.store.CreateWebhook(ctx, w, sealed, w.Created, keyed.Keep(issued))
	if err != nil {
		return IssuedWebhook{}, fmt.Errorf("create a webhook: %w", notOwnSession(keyed.Opened(err)))
	}
	return issued(id), nil
}

// secret creates a secret. shown is the form that the owner sees once, and sealed is the form that is stored.
func (o *Owner) secret(w *puntuale.Webhook) (shown string, sealed []byte) {
	plain := make([]byte, secretBytes)
	_, _ = rand.Read(plain) // Read never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(plain), o.cfg.Vault.Seal(puntuale.SealedWebhook, w.SealPlace(), plain)
}

// check parses the members of a request, and adds their faults to f.
func (o *Owner) check(ctx context.Context, f *request.Faults, r NewWebhook) (p puntuale.WebhookPatch) {
	if r.URL != nil {
		address := strings.TrimSpace(*r.URL)
		checkAddress(ctx, f, "body.url", address, o.cfg.Caller)
		p.URL = &address
	}
	if r.Types != nil {
		var types puntuale.EventSet
		if len(r.Types) == 0 {
			f.Add("body.types", puntuale.FaultRequired, nil)
		}
		f.Entries("body.types", len(r.Types), len(puntuale.AllEvents.Types()))
		for i, name := range r.Types {
			t, err := puntuale.ParseEventType(name)
			if err != nil {
				f.Add(request.At("body.types", i), faultNotType, name)
			}
			types |= puntuale.EventsOf(t)
		}
		p.Types = &types
	}
	if r.Session != nil {
		p.Session = new(o.session(f, *r.Session))
	}
	if r.Description != nil {
		f.Text("body.description", *r.Description, maxDescription)
		p.Description = r.Description
	}
	p.Active = r.Active
	return p
}

func (o *Owner) session(f *request.Faults, text string) (id puntuale.SessionID) {
	if text == "" {
		return 0
	}
	if o.client == 0 {
		f.Add("body.id_sessione", faultClientsSession, text)
		return 0
	}
	id, err := puntuale.ParseID[puntuale.SessionID](text)
	if err != nil {
		f.Add("body.id_sessione", puntuale.FaultNotOwnSession, text)
	}
	return id
}

// checkAddress adds a fault if a text cannot be the address of a receiver. It does not resolve the host name, because
// the result may change. Instead, each attempt checks the resolved address. Faults never contain the address, because
// the address may contain a secret.
func checkAddress(ctx context.Context, f *request.Faults, at, address string, caller Caller) {
	u, err := url.Parse(address)
	switch {
	case address == "":
		f.Add(at, puntuale.FaultRequired, nil)
	case len(address) > maxURL:
		f.Text(at, address, maxURL)
	case err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" || !puntuale.IsPort(u.Port()) || u.Scheme != "https" && u.Scheme != "http":
		f.Add(at, faultNotAddress, nil)
	default:
		if refusal := caller.Refuses(ctx, address); refusal != "" {
			f.Add(at, refusal, nil)
		}
	}
}

// notOwnSession adds the location in the request to the error about a session that does not exist.
func notOwnSession(err error) error {
	e := &puntuale.Error{}
	if puntuale.CodeOf(err) == puntuale.CodeNotFound && errors.As(err, &e) && e.Reason.Code == puntuale.NoSession {
		return puntuale.Invalid(puntuale.Fault{Location: "body.id_sessione", Code: puntuale.FaultNotOwnSession})
	}
	return err
}

// List returns all webhooks, ordered by id, without their secrets.
func (o *Owner) List(ctx context.Context) ([]puntuale.Webhook, error) {
	all, err := o.store.Webhooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	return all, nil
}

// Webhook returns one webhook. Codes: not_found.
func (o *Owner) Webhook(ctx context.Context, id string) (puntuale.Webhook, error) {
	n, err := webhookID(id)
	if err != nil {
		return puntuale.Webhook{}, err
	}
	w, err := o.store.Webhook(ctx, n)
	if err != nil {
		return w, fmt.Errorf("read webhook %d: %w", n, err)
	}
	return w, nil
}

// Update changes the members that the request contains. If Active is true, it also enables a webhook that was disabled.
// Codes: not_found, invalid.
func (o *Owner) Update(ctx context.Context, id string, r NewWebhook) (puntuale.Webhook, error) {
	old, err := o.Webhook(ctx, id)
	if err != nil {
		return old, err
	}
	f := request.Faults(r.Faults)
	p := o.check(ctx, &f, r)
	if err := f.Err(); err != nil {
		return old, err
	}
	changed, err := o.store.UpdateWebhook(ctx, old.ID, p, o.cfg.Clock.Now())
	if err != nil {
		return old, fmt.Errorf("change webhook %d: %w", old.ID, notOwnSession(err))
	}
	return changed, nil
}

// Delete removes a webhook and its waiting deliveries. Codes: not_found.
func (o *Owner) Delete(ctx context.Context, id string) error {
	n, err := webhookID(id)
	if err != nil {
		return err
	}
	if err := o.store.DeleteWebhook(ctx, n); err != nil {
		return fmt.Errorf("delete webhook %d: %w", n, err)
	}
	return nil
}

// Rotate replaces the secret, and returns the time until which the old secret is valid. Until then, for
// [puntuale.WebhookOverlap], deliveries are signed with both secrets. Codes: not_found.
func (o *Owner) Rotate(ctx context.Context, id string) (IssuedWebhook, time.Time, error) {
	w, err := o.Webhook(ctx, id)
	if err != nil {
		return IssuedWebhook{}, time.Time{}, err
	}
	shown, sealed := o.secret(&w)
	oldValidUntil := o.cfg.Clock.Now().Add(puntuale.WebhookOverlap)
	if err := o.store.RotateWebhook(ctx, w.ID, sealed, oldValidUntil); err != nil {
		return IssuedWebhook{}, time.Time{}, fmt.Errorf("rotate the secret of webhook %d: %w", w.ID, err)
	}
	return IssuedWebhook{w, shown}, oldValidUntil, nil
}

// Overlap returns the time until which deliveries are also signed with the previous secret, or the zero time if they
// are not. Codes: not_found.
func (o *Owner) Overlap(ctx context.Context, id puntuale.WebhookID) (time.Time, error) {
	secret, err := o.store.WebhookSecret(ctx, id)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the secret of webhook %d: %w", id, err)
	}
	if !o.cfg.Clock.Now().Before(secret.Until) {
		return time.Time{}, nil
	}
	return secret.Until, nil
}

// Bounds of the tests that run at the same time. A receiver may let its test wait for its whole time.
const (
	maxTests  = 32
	ownTests  = 2 // of one client, or of a partner itself; a partner with its clients has a fair share
	testRetry = 5 * time.Second
)

// Test sends one test event now, and returns the result of the delivery. The webhook may be inactive. Codes: not_found;
// rate_limited while too many tests run.
func (o *Owner) Test(ctx context.Context, id string) (puntuale.DeliveryResult, error) {
	w, err := o.Webhook(ctx, id)
	if err != nil {
		return puntuale.DeliveryResult{}, err
	}
	secret, err := o.store.WebhookSecret(ctx, w.ID)
	if err != nil {
		return puntuale.DeliveryResult{}, fmt.Errorf("read the secret of webhook %d: %w", w.ID, err)
	}
	leave, ok := o.tests.TryEnter(o.shares...)
	if !ok {
		return puntuale.DeliveryResult{}, &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(puntuale.FaultCallTooManyAtOnce), RetryAfter: testRetry}
	}
	defer leave()
	e := puntuale.Event{Client: o.client, Type: puntuale.EventWebhookTest, At: o.cfg.Clock.Now()}
	return o.cfg.Caller.Call(ctx, puntuale.WebhookTarget{Webhook: w, Secret: secret}, e), ctx.Err() // a call that was cut off is no result
}

func webhookID(text string) (puntuale.WebhookID, error) {
	id, err := puntuale.ParseID[puntuale.WebhookID](text)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoWebhook)
	}
	return id, nil
}
