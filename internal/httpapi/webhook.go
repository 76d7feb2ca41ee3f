package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control/request"
	"puntuale/internal/control/webhook"
	"puntuale/internal/eventjson"
)

func registerWebhooks(a *api) {
	const all, one = "/api/webhooks", "/api/webhooks/{id}"
	missing := []int{http.StatusNotFound}
	registerOwned(a, operation{id: "listWebhooks", method: http.MethodGet, path: all,
		summary:     "List webhooks, by id",
		description: "A client's key lists the client's, a partner's key those for all its clients."}, listWebhooks)
	registerOwned(a, operation{id: "createWebhook", method: http.MethodPost, path: all, body: webhookBody{}, idempotent: true,
		summary:     "Make a webhook",
		description: "Its secret is shown only now.", refusals: []int{http.StatusConflict}}, withBody(createWebhook))
	registerOwned(a, operation{id: "getWebhook", method: http.MethodGet, path: one, summary: "Read a webhook", refusals: missing}, getWebhook)
	registerOwned(a, operation{id: "changeWebhook", method: http.MethodPatch, path: one, body: webhookPatchBody{},
		summary:     "Change some members of a webhook",
		description: "Active true also enables a disabled one.", refusals: missing}, withBody(changeWebhook))
	registerOwned(a, operation{id: "deleteWebhook", method: http.MethodDelete, path: one, prevents: true,
		summary:     "Delete a webhook",
		description: "What waits for it is not delivered any more.", refusals: missing}, deleteWebhook)
	registerOwned(a, operation{id: "testWebhook", method: http.MethodPost, path: one + "/test",
		summary: "Send a test event now, and see the answer", refusals: missing}, testWebhook)
	registerOwned(a, operation{id: "rotateWebhook", method: http.MethodPost, path: one + "/rotate",
		summary:     "Replace the secret",
		description: "The one before signs too, for 24 hours.", refusals: missing}, rotateWebhook)
	registerOwned(a, operation{id: "listDeliveries", method: http.MethodGet, path: one + "/deliveries", strict: true,
		summary: "List the deliveries of the last 30 days, newest first", refusals: missing}, listDeliveries)
	registerOwned(a, operation{id: "getDelivery", method: http.MethodGet, path: one + "/deliveries/{seq}", strict: true,
		summary: "Read the body of a delivery, as it would be sent now", refusals: missing}, getDelivery)
	registerOwned(a, operation{id: "replayDeliveries", method: http.MethodPost, path: one + "/replay", body: replayBody{}, optional: true,
		summary:     "Deliver again",
		description: "Some events, those of a time, or all that failed.", refusals: missing}, withOptionalBody(replayDeliveries))
}

// webhookBody documents the body of the call that makes a webhook.
type webhookBody struct {
	Types       []string `json:"types,omitempty" doc:"Such as message.sent; without it all"`
	Active      *bool    `json:"active,omitempty" default:"true"`
	URL         *string  `json:"url" nullable:"false" maxLength:"2048" doc:"Where events are posted to; https"`
	Session     *string  `json:"id_sessione,omitempty" read:"id" doc:"Only events of this session; only with a client's key"`
	Description *string  `json:"description,omitempty" maxLength:"200"`
	_           closedCheck
}

// webhookPatchBody documents the body of the call that changes a webhook.
type webhookPatchBody struct {
	Types       []string `json:"types,omitempty"`
	Active      *bool    `json:"active,omitempty"`
	URL         *string  `json:"url,omitempty" maxLength:"2048"`
	Session     *string  `json:"id_sessione,omitempty" read:"id" doc:"Empty: all sessions"`
	Description *string  `json:"description,omitempty" maxLength:"200"`
	_           closedCheck
}

// WebhookAnswer is a webhook, as a list shows it.
type WebhookAnswer struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Types       []string `json:"types"`
	Session     *string  `json:"id_sessione"`
	Description string   `json:"description"`
	Active      bool     `json:"active"`
	Disabled    *string  `json:"disabled_at" format:"date-time" doc:"When it was disabled for its failures, or by 410"`
	Reason      *string  `json:"reason" doc:"Why it was disabled"`
	Created     string   `json:"created_at" format:"date-time"`
	LastSuccess *string  `json:"last_success_at" format:"date-time"`
	FailingFrom *string  `json:"failing_since" format:"date-time" doc:"The first failure since the last success"`
}

type webhooksAnswer struct {
	Webhooks []WebhookAnswer `json:"webhooks"`
}

type issuedWebhookAnswer struct {
	WebhookAnswer
	Secret string `json:"secret" doc:"Signs the bodies, by Standard Webhooks; shown only now"`
}

func webhookOf(w puntuale.Webhook) WebhookAnswer {
	out := WebhookAnswer{
		ID: w.ID.String(), URL: w.URL, Types: each(w.Types.Types(), puntuale.EventType.String), Description: w.Description, Active: w.Active,
		Disabled: stampOrNull(w.Disabled), Reason: textOrNull(catalogue.Italian.Sentence(w.Reason)), Created: stamp(w.Created),
		LastSuccess: stampOrNull(w.LastSuccess), FailingFrom: stampOrNull(w.FailingFrom),
	}
	if w.Session != 0 {
		out.Session = new(w.Session.String())
	}
	return out
}

func issuedWebhookOf(i webhook.IssuedWebhook) issuedWebhookAnswer {
	return issuedWebhookAnswer{webhookOf(i.Webhook), i.Secret}
}

func listWebhooks(ctx context.Context, o *webhook.Owner, _ *call, _ *struct{}) (webhooksAnswer, error) {
	all, err := o.List(ctx)
	if err != nil {
		return webhooksAnswer{}, err
	}
	return webhooksAnswer{each(all, webhookOf)}, nil
}

func createWebhook(ctx context.Context, o *webhook.Owner, in *call, p *OnceInput, body *webhookBody) (onceAnswer[issuedWebhookAnswer], error) {
	made, err := o.Create(ctx, body.requested(in.refused), once(in, p, issuedWebhookOf))
	return onceAnswerOf(in, issuedWebhookOf(made), err)
}

func (b *webhookBody) requested(faults []puntuale.Fault) webhook.NewWebhook {
	return webhook.NewWebhook{URL: b.URL, Types: b.Types, Session: b.Session, Description: b.Description, Active: b.Active, Faults: faults}
}

func getWebhook(ctx context.Context, o *webhook.Owner, _ *call, p *oneInput) (WebhookAnswer, error) {
	w, err := o.Webhook(ctx, p.ID)
	if err != nil {
		return WebhookAnswer{}, err
	}
	return webhookOf(w), nil
}

func changeWebhook(ctx context.Context, o *webhook.Owner, in *call, p *oneInput, body *webhookPatchBody) (WebhookAnswer, error) {
	w, err := o.Update(ctx, p.ID, (*webhookBody)(body).requested(in.refused))
	if err != nil {
		return WebhookAnswer{}, err
	}
	return webhookOf(w), nil
}

func deleteWebhook(ctx context.Context, o *webhook.Owner, _ *call, p *oneInput) (messageAnswer, error) {
	if err := o.Delete(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Webhook eliminato"}, nil
}

type rotatedWebhookAnswer struct {
	WebhookAnswer
	Secret string `json:"secret" doc:"Signs the bodies, by Standard Webhooks; shown only now"`
	Until  string `json:"secret_before_until" format:"date-time" doc:"The secret before signs too until then"`
}

func rotateWebhook(ctx context.Context, o *webhook.Owner, _ *call, p *oneInput) (rotatedWebhookAnswer, error) {
	made, oldValidUntil, err := o.Rotate(ctx, p.ID)
	if err != nil {
		return rotatedWebhookAnswer{}, err
	}
	return rotatedWebhookAnswer{webhookOf(made.Webhook), made.Secret, stamp(oldValidUntil)}, nil
}

type attemptAnswer struct {
	Delivered bool    `json:"delivered" doc:"The receiver answered 2xx in time"`
	Status    *int    `json:"status" doc:"Of its answer; null: there was none"`
	Took      int64   `json:"took_ms"`
	Answer    *string `json:"answer" doc:"Its first kilobyte"`
	Error     *string `json:"error" doc:"Why there was no answer"`
}

// testWebhook sends a test event. The call has no seat while it waits for the receiver.
func testWebhook(ctx context.Context, o *webhook.Owner, in *call, p *oneInput) (attemptAnswer, error) {
	r, err := o.Test(in.unhurried(ctx), p.ID)
	if err != nil {
		return attemptAnswer{}, err
	}
	answer, why := answerOf(r.Status, r.Answer)
	out := attemptAnswer{Delivered: r.State == puntuale.DeliveryDone, Took: r.Took.Milliseconds(), Answer: answer, Error: why}
	if r.Status != 0 {
		out.Status = &r.Status
	}
	return out, nil
}

// answerOf returns the receiver's answer, or the reason why there is no answer.
func answerOf(status int, text string) (answer, why *string) {
	if status != 0 {
		return &text, nil
	}
	return nil, textOrNull(catalogue.Italian.Sentence(puntuale.ParseReason(text)))
}

type deliveriesInput struct {
	ListInput
	ID    string `path:"id" doc:"ID of the webhook"`
	State string `query:"state" enum:"waiting,delivered,failed"`
}

type deliveryAnswer struct {
	Seq      int64   `json:"seq"`
	EventID  string  `json:"webhook_id" doc:"The header webhook-id of each of its attempts"`
	Client   string  `json:"id_client"`
	Type     string  `json:"type"`
	State    string  `json:"state" enum:"waiting,delivered,failed"`
	Attempts int     `json:"attempts"`
	Next     *string `json:"next_attempt_at" format:"date-time"`
	Tried    *string `json:"last_attempt_at" format:"date-time"`
	Status   *int    `json:"status" doc:"Of the last answer; null: there was none"`
	Took     int64   `json:"took_ms"`
	Answer   *string `json:"answer" doc:"The first kilobyte of the last answer"`
	Error    *string `json:"error" doc:"Why there was no answer"`
}

type deliveriesAnswer struct {
	Deliveries []deliveryAnswer `json:"deliveries"`
	Next       *string          `json:"next_cursor"`
}

func deliveryOf(d puntuale.Delivery) deliveryAnswer {
	out := deliveryAnswer{
		Seq: d.Seq, EventID: eventjson.ID(&puntuale.Event{Client: d.Client, Seq: d.Seq, Type: d.Type}), Client: d.Client.String(), Type: d.Type.String(),
		State: d.State.String(), Attempts: d.Attempts, Tried: stampOrNull(d.Tried), Took: d.Took.Milliseconds(),
	}
	if d.State == puntuale.DeliveryWaiting {
		out.Next = stampOrNull(d.Next)
	}
	if d.Attempts > 0 {
		out.Answer, out.Error = answerOf(d.Status, d.Answer)
	}
	if d.Status != 0 {
		out.Status = &d.Status
	}
	return out
}

func listDeliveries(ctx context.Context, o *webhook.Owner, in *call, p *deliveriesInput) (deliveriesAnswer, error) {
	rows, next, err := o.Deliveries(ctx, p.ID, webhook.DeliveryQuery{State: p.State, Page: p.page(in)})
	if err != nil {
		return deliveriesAnswer{}, err
	}
	return deliveriesAnswer{each(rows, deliveryOf), textOrNull(next)}, nil
}

type deliveryInput struct {
	ID     string `path:"id" doc:"ID of the webhook"`
	Seq    string `path:"seq" doc:"Number of the event"`
	Client string `query:"id_client" doc:"Whose event it is: needed for a partner's webhook"`
}

func getDelivery(ctx context.Context, o *webhook.Owner, in *call, p *deliveryInput) (json.RawMessage, error) {
	if len(in.unknown) > 0 {
		return nil, puntuale.Invalid(in.unknown...)
	}
	e, wide, err := o.Event(ctx, p.ID, p.Client, p.Seq)
	if err != nil {
		return nil, err
	}
	return eventjson.Body(&e, wide), nil
}

// replayBody documents the body of the call that delivers events again.
type replayBody struct {
	Failed bool    `json:"failed,omitempty" doc:"Only deliveries that were given up"`
	Client string  `json:"id_client,omitempty" read:"id" doc:"Whose events seqs are; only for a partner's webhook"`
	Seqs   []int64 `json:"seqs,omitempty" maxItems:"1000" doc:"Only these events"`
	From   string  `json:"from,omitempty" doc:"Events from this moment on, or from this day"`
	To     string  `json:"to,omitempty" doc:"Events up to this minute, or to the end of this day"`
	_      closedCheck
}

type replayAnswer struct {
	Deliveries int `json:"deliveries" doc:"How many wait again"`
}

func replayDeliveries(ctx context.Context, o *webhook.Owner, in *call, p *oneInput, body *replayBody) (replayAnswer, error) {
	requested := webhook.ReplayCall{Failed: body.Failed, Client: body.Client, Seqs: body.Seqs, Faults: in.refused}
	if body.From != "" {
		requested.Period.Start = []request.Bound{{Name: "from", Text: body.From}}
	}
	if body.To != "" {
		requested.Period.End = []request.Bound{{Name: "to", Text: body.To}}
	}
	n, err := o.Replay(ctx, p.ID, requested)
	return replayAnswer{n}, err
}
