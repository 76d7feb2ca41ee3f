package webhook

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/control/request"
)

// DeliveryQuery narrows a list of deliveries.
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

// Event returns the event of a delivery, with the body that a receiver would get now. wide says whether this body names
// the client. client is the id of the event's client; "" means the owner. Codes: not_found.
func (o *Owner) Event(ctx context.Context, id, client, seq string) (e puntuale.Event, wide bool, err error) {
	n, err := webhookID(id)
	if err != nil {
		return e, false, err
	}
	of, number := o.client, int64(0)
	if client != "" {
		of, err = puntuale.ParseID[puntuale.ClientID](client)
	}
	if err == nil {
		number, err = puntuale.ParseID[int64](seq)
	}
	if err != nil || o.client != 0 && of != o.client {
		return e, false, puntuale.NotFound(puntuale.NoDelivery)
	}
	if e, err = o.store.DeliveryEvent(ctx, n, of, number); err != nil {
		return e, false, fmt.Errorf("read the event of a delivery: %w", err)
	}
	return e, o.client == 0, nil
}

// ReplayCall is a request to deliver events again.
type ReplayCall struct {
	Period request.Period // of the events; empty: all events that are kept
	Failed bool           // true: only deliveries that were given up
	Seqs   []int64        // only these numbers of events; nil: all
	Client string         // the client whose events Seqs are; needed for a partner's webhook
	Faults []puntuale.Fault
}

// maxReplay is how many events a replay may name.
const maxReplay = 1000

// Replay makes deliveries wait again, and counts their attempts from the first. It returns how many. Codes: not_found,
// invalid.
func (o *Owner) Replay(ctx context.Context, id string, r ReplayCall) (int, error) {
	w, err := o.Webhook(ctx, id)
	if err != nil {
		return 0, err
	}
	f := request.Faults(r.Faults)
	again := puntuale.Replay{Failed: r.Failed, Seqs: r.Seqs, Client: o.client}
	var period request.Faults
	again.From, again.To = r.Period.Loose(&period, o.zone)
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
		if again.Client, err = puntuale.ParseID[puntuale.ClientID](r.Client); err != nil {
			f.Add("body.id_client", faultNotClient, r.Client)
		}
	}
	if err := f.Err(); err != nil {
		return 0, err
	}
	n, err := o.store.Replay(ctx, w.ID, again, o.cfg.Clock.Now())
	if err != nil {
		return 0, fmt.Errorf("deliver again: %w", err)
	}
	return n, nil
}

const faultNotClient puntuale.ReasonCode = "webhook.not_client"
