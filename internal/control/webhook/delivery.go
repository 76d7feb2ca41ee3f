package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// DeliveryQuery is a search for deliveries.
type DeliveryQuery struct {
	State string // waiting, delivered, failed; "": all
	Page  request.Page
}

var deliveryStates = []puntuale.DeliveryState{puntuale.DeliveryWaiting, puntuale.DeliveryDone, puntuale.DeliveryFailed}

// Deliveries lists a webhook's deliveries, newest first. Codes: not_found, invalid.
func (o *Owner) Deliveries(ctx context.Context, id string, q DeliveryQuery) ([]puntuale.Delivery, string, error) {
	w, err := o.Webhook(ctx, id)
	if err != nil {
		return nil, "", err
	}
	f := request.Faults(q.Page.Unknown)
	var filter puntuale.DeliveryFilter
	for _, s := range deliveryStates {
		if q.State == s.String() {
			filter.State = new(s)
		}
	}
	if q.State != "" && filter.State == nil {
		f.Add("query.state", puntuale.FaultNotOneOf, q.State, "waiting, delivered, failed")
	}
	q.Page.Unknown = f
	rows, next, err := request.List(q.Page, func(p puntuale.Page) ([]puntuale.Delivery, string, error) {
		return o.store.Deliveries(ctx, w.ID, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list deliveries: %w", err)
	}
	return rows, next, nil
}

// Event returns the event of a delivery. client is the id of the event's client; "" means the webhook owner. wide is
// true if the event's body contains the id of the client. Codes: not_found.
func (o *Owner) Event(ctx context.Context, id, client, seq string) (e puntuale.Event, wide bool, err error) {
	n, err := webhookID(id)
	if err != nil {
		return e, false, err
	}
	owner, number := o.client, int64(0)
	if client != "" {
		owner, err = puntuale.ParseID[puntuale.ClientID](client)
	}
	if err == nil {
		number, err = puntuale.ParseID[int64](seq)
	}
	if err != nil || o.client != 0 && owner != o.client {
		return e, false, puntuale.NotFound(puntuale.NoDelivery)
	}
	if _, e, err = o.store.Delivery(ctx, n, owner, number); err != nil {
		return e, false, fmt.Errorf("read the event of a delivery: %w", err)
	}
	return e, o.client == 0, nil
}

// SentDelivery is a delivery with its last request, or with its first request if there was no attempt yet.
type SentDelivery struct {
	puntuale.Delivery
	Event   puntuale.Event
	Request puntuale.WebhookRequest // has no signature if Signed is false, and no time if there was no attempt yet
	// Signed is true if the last attempt's signature is known. Before the first attempt, and after the secret was
	// replaced, the signature is unknown.
	Signed   bool
	Replaced bool // true: the secret was replaced after the last attempt
}

// Delivery returns a delivery. The argument name is the header webhook-id in each attempt of the delivery. The body is
// made from the current event. Therefore, if a person was erased after the last attempt, the body no longer contains
// the person's data. Codes: not_found.
func (o *Owner) Delivery(ctx context.Context, id, name string) (d SentDelivery, err error) {
	w, err := o.Webhook(ctx, id)
	if err != nil {
		return d, err
	}
	text, known := strings.CutPrefix(name, "evt_")
	client, seq, parted := strings.Cut(text, "_")
	owner, wrong := puntuale.ParseID[puntuale.ClientID](client)
	number, wrongToo := puntuale.ParseID[int64](seq)
	if !known || !parted || wrong != nil || wrongToo != nil || o.client != 0 && owner != o.client {
		return d, puntuale.NotFound(puntuale.NoDelivery)
	}
	if d.Delivery, d.Event, err = o.store.Delivery(ctx, w.ID, owner, number); err != nil {
		return d, fmt.Errorf("read a delivery: %w", err)
	}
	secret, err := o.store.WebhookSecret(ctx, w.ID)
	if err != nil {
		return d, fmt.Errorf("read the secret of webhook %d: %w", w.ID, err)
	}
	replaced := secret.Until.Add(-puntuale.WebhookOverlap) // if Until is the zero time, the result is before every attempt
	d.Replaced = !d.Tried.IsZero() && d.Tried.Before(replaced)
	d.Signed = !d.Tried.IsZero() && !d.Replaced
	if d.Request, err = o.cfg.Caller.Request(puntuale.WebhookTarget{Webhook: w, Secret: secret}, d.Event, d.Tried); err != nil {
		return d, fmt.Errorf("make the request of a delivery again: %w", err)
	}
	if !d.Signed {
		d.Request.Header = slices.DeleteFunc(d.Request.Header, func(h puntuale.HeaderField) bool {
			return h.Name == "Webhook-Signature" || d.Tried.IsZero() && h.Name == "Webhook-Timestamp"
		})
	}
	return d, nil
}

// ReplayCall is a request to deliver events again.
type ReplayCall struct {
	Period request.Period // the events must be in this period; empty: all stored events
	Failed bool           // true: only deliveries that were given up
	Seqs   []int64        // only the events with these numbers; nil: all
	Client string         // the client whose events have the numbers in Seqs; required for a partner's webhook
	Faults []puntuale.Fault
}

// maxReplay bounds the event numbers in a replay.
const maxReplay = 1000

// Replay sets deliveries to waiting again, and resets their count of attempts. It returns how many deliveries it
// changed. Codes: not_found, invalid.
func (o *Owner) Replay(ctx context.Context, id string, r ReplayCall) (int, error) {
	w, err := o.Webhook(ctx, id)
	if err != nil {
		return 0, err
	}
	f := request.Faults(r.Faults)
	replay := puntuale.Replay{Failed: r.Failed, Seqs: r.Seqs, Client: o.client}
	var period request.Faults
	replay.From, replay.To = r.Period.Loose(&period, o.zone)
	for _, fault := range period {
		f.Add("body"+fault.Location[len("query"):], fault.Code, fault.Value, fault.Args...)
	}
	f.Entries("body.seqs", len(r.Seqs), maxReplay)
	switch {
	case r.Client != "" && o.client != 0:
		f.Add("body.id_client", puntuale.FaultGoesWithout, nil, "a client's key")
	case r.Client == "" && o.client == 0 && r.Seqs != nil:
		f.Add("body.id_client", puntuale.FaultRequired, nil)
	case r.Client != "":
		if replay.Client, err = puntuale.ParseID[puntuale.ClientID](r.Client); err != nil {
			f.Add("body.id_client", faultNotClient, r.Client)
		}
	}
	if err := f.Err(); err != nil {
		return 0, err
	}
	n, err := o.store.Replay(ctx, w.ID, replay, o.cfg.Clock.Now())
	if err != nil {
		return 0, fmt.Errorf("deliver again: %w", err)
	}
	return n, nil
}

const faultNotClient puntuale.ReasonCode = "webhook.not_client"
