package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/web/view"
)

// List is the page with all webhooks.
type List struct {
	Base    string // the beginning of the pages' addresses
	Partner bool   // true: the webhooks get the events of all the partner's clients
	Rows    []puntuale.Webhook
}

// Editor is the page with the form of a webhook.
type Editor struct {
	Form     *view.Form
	Webhook  puntuale.Webhook // zero: a new webhook
	Base     string
	Partner  bool
	Sessions []view.Option
}

// WebhookSecret is a webhook with its secret. The secret is shown only once.
type WebhookSecret struct {
	Webhook puntuale.Webhook
	Secret  string
	Until   time.Time // until this time, events also have a signature with the previous secret; zero: there is no previous secret
	Base    string
}

// WebhookDetail is the page of one webhook.
type WebhookDetail struct {
	Webhook puntuale.Webhook
	Base    string
	Session string    // the session's name; "": no session
	Overlap time.Time // until this time, events also have a signature with the previous secret; zero: only the present secret signs
	Rows    []puntuale.Delivery
	Names   map[puntuale.ClientID]string // names of the clients in Rows; nil on a client's own page
	State   string                       // the list shows only deliveries in this state; "": all deliveries
	Cursor  string
	Next    string
	Test    *puntuale.DeliveryResult // nil: no test was made
	Replay  *view.Form
	Refused bool // true: the replay was refused
}

// DeliveryDetail is the page of one delivery.
type DeliveryDetail struct {
	puntuale.Delivery
	Webhook  puntuale.Webhook
	Base     string
	Name     string // the webhook-id of the delivery
	Whose    string // the client's name; "" on a client's own page, and for a deleted client
	Request  puntuale.WebhookRequest
	Signed   bool
	Replaced bool
}

func oneURL(base string, id puntuale.WebhookID) string { return base + "/" + id.String() }

func deliveryName(d puntuale.Delivery) string {
	return "evt_" + d.Client.String() + "_" + strconv.FormatInt(d.Seq, 10)
}

func deliveryURL(base string, d puntuale.Delivery) string {
	return oneURL(base, d.Webhook) + "/deliveries/" + deliveryName(d)
}

// listURL returns the address of the list of deliveries in a state.
func (p WebhookDetail) listURL(state string) string {
	address := oneURL(p.Base, p.Webhook.ID)
	if state != "" {
		address += "?state=" + state
	}
	return address
}

// partner reports whether the webhook gets the events of several clients.
func partner(w puntuale.Webhook) bool { return w.Client == 0 }

// clientName returns the name of an event's client, or a text with the client's id if the client was deleted.
func clientName(ctx context.Context, name string, id puntuale.ClientID) string {
	return view.Or(name, view.T(ctx, "webhook.client", "ID", id))
}

// shownURL returns a webhook's address. The address's query may contain a secret, so only owners see the query.
func shownURL(ctx context.Context, w puntuale.Webhook) string {
	before, _, secret := strings.Cut(w.URL, "?")
	if !secret || view.Has(ctx, puntuale.Owner) {
		return w.URL
	}
	return before + "?…"
}

// shortURL returns an address without the parts that all addresses have.
func shortURL(w puntuale.Webhook) string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return w.URL
	}
	return u.Host + strings.TrimSuffix(u.EscapedPath(), "/")
}

// path returns the host and the target in the first line of a request.
func path(ctx context.Context, w puntuale.Webhook) (host, target string) {
	u, err := url.Parse(shownURL(ctx, w))
	if err != nil {
		return "", w.URL
	}
	return u.Host, u.RequestURI()
}

// deliveryStates are the tabs above the list. Each tab shows the deliveries in one state; "" shows all.
var deliveryStates = []string{"", "waiting", "delivered", "failed"}

// stateKey returns the tone of a delivery's state, and the state's text key. A delivery that waits after an attempt has
// its own text.
func stateKey(d puntuale.Delivery) (tone, key string) {
	switch {
	case d.State == puntuale.DeliveryDone:
		return "ok", "webhook.state.delivered"
	case d.State == puntuale.DeliveryFailed:
		return "bad", "webhook.state.failed"
	case d.Attempts > 0:
		return "warn", "webhook.state.retry"
	}
	return "wait", "webhook.state.waiting"
}

// answered describes the result of the last attempt: the HTTP status, or the reason why there was no answer.
func answered(ctx context.Context, status int, answer string) string {
	if status != 0 {
		return strconv.Itoa(status)
	}
	return view.Says(ctx, puntuale.ParseReason(answer))
}

// took formats a duration in milliseconds or seconds.
func took(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// indented returns a JSON body with line breaks and indentation.
func indented(body []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		return string(body)
	}
	return b.String()
}

// raw returns a request as it is sent over the network.
func raw(ctx context.Context, s DeliveryDetail) string {
	host, target := path(ctx, s.Webhook)
	var b strings.Builder
	b.WriteString("POST " + target + " HTTP/1.1\nHost: " + host + "\n")
	for _, h := range s.Request.Header {
		b.WriteString(h.Name + ": " + h.Value + "\n")
	}
	b.WriteString("Content-Length: " + strconv.Itoa(len(s.Request.Body)) + "\n\n")
	b.Write(s.Request.Body)
	return b.String()
}

// introduction explains what webhooks are for.
func introduction(ctx context.Context, partner bool) string {
	if partner {
		return view.T(ctx, "webhook.text_partner")
	}
	return view.T(ctx, "webhook.text")
}

// action returns the address to which the form is posted. back returns the address of the page before the form.
func (e Editor) action() string {
	if e.Webhook.ID == 0 {
		return e.Base
	}
	return oneURL(e.Base, e.Webhook.ID) + "/edit"
}

func (e Editor) back() string {
	if e.Webhook.ID == 0 {
		return e.Base
	}
	return oneURL(e.Base, e.Webhook.ID)
}

func editorHeading(ctx context.Context, e Editor) string {
	if e.Webhook.ID == 0 {
		return view.T(ctx, "webhook.new")
	}
	return view.T(ctx, "webhook.edit_heading")
}

func editorBack(ctx context.Context, e Editor) string {
	if e.Webhook.ID == 0 {
		return view.T(ctx, "webhook.heading")
	}
	return shortURL(e.Webhook)
}

func issuedHeading(ctx context.Context, i WebhookSecret) string {
	if i.Until.IsZero() {
		return view.T(ctx, "webhook.created_heading")
	}
	return view.T(ctx, "webhook.rotated_heading")
}

func noDeliveries(ctx context.Context, p WebhookDetail) string {
	if p.State == "" && p.Cursor == "" {
		return view.T(ctx, "webhook.no_deliveries")
	}
	return view.T(ctx, "webhook.none_here")
}

// typeGroups returns all types of events, grouped by subject.
func typeGroups() (groups [][]puntuale.EventType) {
	places := map[string]int{}
	for _, t := range puntuale.AllEvents.Types() {
		subject, _, _ := strings.Cut(t.String(), ".")
		i, known := places[subject]
		if !known {
			i, places[subject], groups = len(groups), len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// typesInShort describes which events a webhook gets: all, the only type, or the number of types.
func typesInShort(ctx context.Context, set puntuale.EventSet) string {
	all := set.Types()
	switch {
	case set == puntuale.AllEvents:
		return view.T(ctx, "webhook.all_types")
	case len(all) == 1:
		return view.T(ctx, "webhook.type."+all[0].String())
	}
	return view.T(ctx, "webhook.count_types", "N", len(all))
}

func typesInFull(ctx context.Context, set puntuale.EventSet) string {
	if set == puntuale.AllEvents {
		return view.T(ctx, "webhook.all_types")
	}
	var names []string
	for _, t := range set.Types() {
		names = append(names, view.T(ctx, "webhook.type."+t.String()))
	}
	return strings.Join(names, ", ")
}
