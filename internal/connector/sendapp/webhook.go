package sendapp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"puntuale"
)

// Limits of one delivery.
const (
	maxWebhook  = 1 << 20          // the largest body, in bytes
	webhookWait = 10 * time.Second // how long handling one delivery may take
	maxEvents   = 500              // the most messages of one delivery that are read
)

// Webhook is the handler of [puntuale.GatewayWebhooks]. Every node can run it. A gateway signs nothing, and it does not
// repeat a report after an error. A request to a session's secret address gets status 200 after its content is stored,
// or if the content is useless. Every other address gets 404.
type Webhook struct{ c *Connector }

// NewWebhook returns the handler. The handler also serves sessions that are not open on this node.
func (c *Connector) NewWebhook() *Webhook { return &Webhook{c} }

// source is the session that a webhook belongs to.
type source struct {
	session  puntuale.SessionID
	client   puntuale.ClientID
	instance string
}

// ServeHTTP checks the address before it reads the body.
func (h *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), webhookWait)
	defer cancel()
	w.Header().Set("Cache-Control", "no-store")
	session := h.Named(r.URL.Path)
	if session == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	from, err := h.find(ctx, session)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case from.session == 0:
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := h.c.cfg.ReadBody(w, r, maxWebhook)
	switch puntuale.CodeOf(err) {
	case "":
		w.WriteHeader(h.take(ctx, from, body))
	case puntuale.CodeTooLarge:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case puntuale.CodeOverloaded, puntuale.CodeRateLimited:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// readBody is the default of Config.ReadBody.
func readBody(w http.ResponseWriter, r *http.Request, maxBytes int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(puntuale.FaultCallBodyTooLarge), Err: err}
	}
	return body, err
}

// Expects reports whether a request may be from a gateway: its address must contain the secret.
func (h *Webhook) Expects(r *http.Request) bool { return h.Named(r.URL.Path) != 0 }

// Named returns the session of a webhook's address, or 0 for any other address. It needs no database, because the
// secret in the address is a keyed hash of the session.
func (h *Webhook) Named(path string) puntuale.SessionID {
	id, _, _ := strings.Cut(strings.TrimPrefix(path, puntuale.GatewayWebhooks), "/")
	session, err := puntuale.ParseID[puntuale.SessionID](id)
	if err != nil || !equalSecrets(path, session.GatewayWebhookPath(h.c.cfg.Mark)) {
		return 0
	}
	return session
}

// find returns the session with its client and instance. If the session does not exist, or has no keys, find returns
// the zero source.
func (h *Webhook) find(ctx context.Context, session puntuale.SessionID) (source, error) {
	client, keys, err := h.c.keysOf(ctx, session)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return source{}, nil
	case err != nil:
		h.c.cfg.Logger.Error("the keys of a session could not be read for its webhook", "session_id", int64(session), "error", err)
		return source{}, err
	case keys == nil:
		return source{}, nil
	}
	return source{session, client, keys.InstanceID}, nil
}

// equalSecrets compares two texts. The time it needs reveals nothing about the texts.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// take stores a gateway's report, and returns the HTTP status of the answer.
func (h *Webhook) take(ctx context.Context, from source, body []byte) int {
	r, ok := readReport(body)
	log := h.c.cfg.Logger.With("session_id", int64(from.session))
	if !ok || from.instance == "" || !equalSecrets(r.Instance, from.instance) {
		log.Info("a gateway reported something that is not understood, or of another instance")
		return http.StatusOK // the status is not an error, because a repeat of the same report would also be useless
	}
	t := &deliveryBatch{c: h.c, from: from, now: h.c.cfg.Clock.Now()}
	var err error
	switch r.Event {
	case "messages.upsert":
		err = t.arrived(ctx, r.arrivals())
	case "messages.update":
		err = t.acked(ctx, r.updates())
	}
	if err == nil && len(t.reported.Receipts)+len(t.reported.Messages) > 0 {
		if err = h.c.cfg.Take(ctx, from.session, t.reported); err == nil {
			h.c.aliases.Note(t.reported.Aliases, t.now)
		}
	}
	if err != nil {
		log.Error("what a gateway reported could not be stored", "error", err)
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// deliveryBatch collects the reports of one delivery.
type deliveryBatch struct {
	c        *Connector
	from     source
	now      time.Time
	reported puntuale.InboundBatch
}

// arrived reads three kinds of messages: messages from people, echoes of this connector's messages, and messages that
// the client's people wrote on the phone.
func (t *deliveryBatch) arrived(ctx context.Context, all arrivals) error {
	for _, m := range all.Messages[:min(len(all.Messages), maxEvents)] {
		h, written := m.shown()
		h.Phone, h.Own = m.Key.person(), m.Key.FromMe
		if h.Own {
			own, err := t.echo(ctx, m, h, all.Type == "append")
			if err != nil {
				return err
			}
			written = written && !own && m.Key.ID != "" && h.Phone != t.c.ownNumber(t.from.session)
		}
		if written && h.Phone != "" {
			h.Quoted = storable(h.Quoted, maxNetworkID)
			if h.Own { // what the client's own people write answers no message
				h.Payload, h.Quoted = "", ""
			}
			h.Client, h.Session, h.At, h.ID = t.from.client, t.from.session, t.moment(m.At), storable(m.Key.ID, maxNetworkID)
			t.reported.Messages = append(t.reported.Messages, h.Storable())
			t.name(m.Key.hidden(), h.Phone)
		}
	}
	return t.resolveQuotes(ctx)
}

// name records that a LID and a number are names of one person.
func (t *deliveryBatch) name(lid, phone string) {
	x := puntuale.Alias{Client: t.from.client, Session: t.from.session, Name: lid, Phone: phone}
	if lid != "" && lid != phone && !slices.Contains(t.reported.Aliases, x) && !t.c.aliases.Known(x, t.now) {
		t.reported.Aliases = append(t.reported.Aliases, x)
	}
}

// resolveQuotes finds the messages of this server that people quote.
func (t *deliveryBatch) resolveQuotes(ctx context.Context) error {
	var ids []string
	for _, h := range t.reported.Messages {
		if h.Quoted != "" {
			ids = append(ids, h.Quoted)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	known, err := t.c.cfg.Store.NetworkIDs(ctx, t.from.client, t.from.session, ids)
	if err != nil {
		return err
	}
	for i := range t.reported.Messages {
		h := &t.reported.Messages[i]
		if n, ok := known[h.Quoted]; ok {
			h.InReplyTo, h.Quoted = n.MessageRef.ID, ""
		}
	}
	return nil
}

// ownNumber returns the number of an open session, or "" if the session is not open on this node.
func (c *Connector) ownNumber(session puntuale.SessionID) string {
	a := c.account(session)
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.number
}

// Limits for matching an echo with an attempt.
const (
	echoWithin = 10 * time.Minute
	echoBefore = 5 * time.Second // an echo may seem this much older than its attempt, because clocks differ and the network rounds times to seconds
)

// echo reports whether this connector sent a message, or may have sent it. If record is true, echo also records that
// the message with this id was sent. If no message has the id, echo records this for the open attempt to the same chat
// with the same text. If there are several such attempts, echo records nothing.
func (t *deliveryBatch) echo(ctx context.Context, m message, h puntuale.InboundMessage, record bool) (own bool, err error) {
	to, id := m.Key.recipient(), storable(m.Key.ID, maxNetworkID)
	if to == "" || id == "" {
		return false, nil
	}
	known, err := t.c.cfg.Store.NetworkIDs(ctx, t.from.client, t.from.session, []string{id})
	if err != nil {
		return false, err
	}
	if n, ok := known[id]; ok { // the gateway's answer came, but this node may have stopped before it stored the outcome
		if record {
			t.reported.Receipts = append(t.reported.Receipts, t.receipt(n, puntuale.ReceiptSent))
		}
		return true, nil
	}
	open, err := t.c.cfg.Store.OpenAttempts(ctx, t.from.client, t.from.session, to, t.now.Add(-echoWithin))
	if err != nil {
		return false, err
	}
	at := t.moment(m.At)
	open = slices.DeleteFunc(open, func(o puntuale.OpenAttempt) bool {
		return written(o.Content) != h.Text || (o.Content.MediaURL != "") != (h.Media != nil) || at.Before(o.Begun.Add(-echoBefore).Truncate(time.Second))
	})
	if len(open) != 1 || !record {
		return len(open) > 0, nil
	}
	o := open[0]
	n := puntuale.NetworkID{MessageRef: o.MessageRef, Session: t.from.session, ID: id, Token: o.Token, At: t.now}
	if err := t.c.cfg.Store.KeepNetworkID(ctx, t.from.client, n); err != nil {
		return false, err
	}
	t.reported.Receipts = append(t.reported.Receipts, t.receipt(n, puntuale.ReceiptSent))
	return true, nil
}

func (t *deliveryBatch) receipt(n puntuale.NetworkID, kind puntuale.ReceiptKind) puntuale.DeliveryReceipt {
	return puntuale.DeliveryReceipt{MessageRef: n.MessageRef, Session: t.from.session, Token: n.Token, Kind: kind, At: t.now, Detail: puntuale.Quoted(n.ID)}
}

// answerWait is how long an ack with an unknown id waits for the answer that contains the id.
const answerWait = 2 * time.Second

// acked reads the receipts of messages. An ack may come before the answer that contains its message's id.
func (t *deliveryBatch) acked(ctx context.Context, all []update) error {
	all = all[:min(len(all), maxEvents)]
	all = slices.DeleteFunc(all, func(u update) bool { return !u.Key.FromMe || u.Key.ID == "" || u.Update.Status == nil })
	if len(all) == 0 {
		return nil
	}
	ids := make([]string, len(all))
	for i, u := range all {
		ids[i] = storable(u.Key.ID, maxNetworkID)
	}
	known, err := t.c.cfg.Store.NetworkIDs(ctx, t.from.client, t.from.session, ids)
	if err != nil {
		return err
	}
	if expected, err := t.expected(ctx, all, known); err != nil || expected {
		if err == nil {
			err = t.c.cfg.Clock.Sleep(ctx, answerWait)
		}
		if err == nil {
			known, err = t.c.cfg.Store.NetworkIDs(ctx, t.from.client, t.from.session, ids)
		}
		if err != nil {
			return err
		}
	}
	for i, u := range all {
		if n, ok := known[ids[i]]; ok {
			t.ack(n, u)
		}
	}
	return nil
}

// expected reports whether an ack with an unknown id may belong to an attempt in flight.
func (t *deliveryBatch) expected(ctx context.Context, all []update, known map[string]puntuale.NetworkID) (bool, error) {
	for _, u := range all {
		if _, ok := known[storable(u.Key.ID, maxNetworkID)]; ok || u.Key.recipient() == "" {
			continue
		}
		open, err := t.c.cfg.Store.OpenAttempts(ctx, t.from.client, t.from.session, u.Key.recipient(), t.now.Add(-sendTimeout))
		if err != nil || len(open) > 0 {
			return len(open) > 0, err
		}
	}
	return false, nil
}

// Statuses in messages.update, with the numbers of the library Baileys.
const (
	statusError     = 0
	statusServer    = 2
	statusDelivered = 3
	statusPlayed    = 5
)

// reasonCode is the detail of a failure. {1}: WhatsApp's codes, {2}: the id of the message.
const reasonCode puntuale.ReasonCode = "sendapp.code"

// codeRestricted is WhatsApp's error code for a restricted number.
const codeRestricted = "463"

func (t *deliveryBatch) ack(n puntuale.NetworkID, u update) {
	var e puntuale.DeliveryReceipt
	switch status := *u.Update.Status; {
	case status == statusError:
		e = t.receipt(n, puntuale.ReceiptFailed)
		e.Reason = puntuale.Because(puntuale.ReasonNotAccepted)
		if slices.Contains(u.Update.Codes, codeRestricted) {
			e.Reason = puntuale.Because(reasonRestricted)
		}
		e.Detail = puntuale.Because(reasonCode, storable(strings.Join(u.Update.Codes, " "), 160), n.ID)
	case status == statusServer:
		e = t.receipt(n, puntuale.ReceiptSent)
	case status == statusDelivered:
		e = t.receipt(n, puntuale.ReceiptDelivered)
	case status > statusDelivered && status <= statusPlayed:
		e = t.receipt(n, puntuale.ReceiptRead)
	default: // status 1 (not yet at WhatsApp's server) and unknown statuses give no receipt
		return
	}
	t.reported.Receipts = append(t.reported.Receipts, e)
}

// moment returns the time of an event, but never a time later than now.
func (t *deliveryBatch) moment(at seconds) time.Time {
	if at.IsZero() || at.After(t.now) {
		return t.now
	}
	return at.Time
}
