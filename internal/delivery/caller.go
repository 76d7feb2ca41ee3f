package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/eventjson"
	"puntuale/internal/media"
	"puntuale/internal/outside"
)

// CallerConfig is the configuration of a [Caller]. Unseal and Clock must be set.
type CallerConfig struct {
	// Unseal decrypts a webhook's sealed secret. It returns the bytes of the signing key.
	Unseal func(w *puntuale.Webhook, sealed []byte) ([]byte, error)
	Clock  clock.Clock
	Logger *slog.Logger // default: slog.Default
	// Chatwoot sends the events of links to Chatwoot. nil: their deliveries fail.
	Chatwoot puntuale.ChatwootCaller
	Memory   outside.MemoryGrants                                                  // pays for the answers of receivers; nil: they are only bounded
	Allow    []netip.Prefix                                                        // private networks that receivers may be in; plain http is allowed only in these networks
	Roots    *x509.CertPool                                                        // nil: the system's certificates
	Lookup   func(ctx context.Context, network, host string) ([]netip.Addr, error) // asks DNS; nil: the system's resolver
	Within   time.Duration                                                         // how long a receiver may need for its answer; default [puntuale.WebhookWithin]
}

// Caller makes attempts to deliver events. It is safe for concurrent use.
type Caller struct {
	cfg  CallerConfig
	http http.RoundTripper
}

// NewCaller returns a caller.
func NewCaller(cfg CallerConfig) *Caller {
	if cfg.Within <= 0 {
		cfg.Within = puntuale.WebhookWithin
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Lookup == nil {
		cfg.Lookup = net.DefaultResolver.LookupNetIP
	}
	return &Caller{cfg: cfg, http: media.WebhookTransport(cfg.Allow, cfg.Roots)}
}

// Call makes one attempt. It never fails: the result says what went wrong.
func (c *Caller) Call(ctx context.Context, t puntuale.WebhookTarget, e puntuale.Event) puntuale.DeliveryResult {
	r := puntuale.DeliveryResult{Webhook: t.ID, Client: e.Client, Seq: e.Seq, State: puntuale.DeliveryFailed, At: c.cfg.Clock.Now()}
	a := c.attempt(ctx, &t, &e, false)
	if a.taken() {
		r.State = puntuale.DeliveryDone
	}
	r.At, r.Status, r.Took, r.Answer, r.ReceiverGone = a.at, a.status, a.took, a.text, a.isGone()
	return r
}

// answer is the result of an attempt.
type answer struct {
	at         time.Time
	took       time.Duration
	status     int           // HTTP status; 0: there was no answer
	text       string        // see [puntuale.Delivery].Answer
	retryAfter time.Duration // how long the receiver requested to wait; 0: it requested nothing
	noCall     bool          // the event needed no call
}

func (a *answer) taken() bool  { return a.status >= 200 && a.status <= 299 }
func (a *answer) isGone() bool { return a.status == http.StatusGone }

// attempt posts an event once. It takes at most [CallerConfig].Within, and then as long as
// [outside.Webhook] allows for the body of the answer.
func (c *Caller) attempt(ctx context.Context, t *puntuale.WebhookTarget, e *puntuale.Event, repeat bool) (a answer) {
	a.at = c.cfg.Clock.Now()
	// A panic must end neither the server nor the other deliveries. This delivery is tried again, as after any failure.
	defer func() {
		if r := recover(); r != nil {
			a.text, a.status = puntuale.Because(puntuale.ReasonWebhookGarbage).Stored(), 0
			c.cfg.Logger.Error("an attempt to deliver an event panicked", "webhook_id", int64(t.ID), "error", &puntuale.PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	secrets, err := c.secrets(t, a.at)
	if err != nil {
		a.text = puntuale.Because(puntuale.ReasonWebhookSecret).Stored()
		return a
	}
	if t.Chatwoot.Inbox != 0 {
		c.sendToChatwoot(ctx, t, e, string(secrets[0]), repeat, &a)
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Within)
	defer cancel()
	sent := signed(secrets, t, e, a.at)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(sent.Body))
	if err != nil {
		a.text = puntuale.Because(puntuale.ReasonWebhookAddress).Stored()
		return a
	}
	for _, f := range sent.Header {
		r.Header.Set(f.Name, f.Value)
	}
	if u := r.URL.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
	got, err := c.http.RoundTrip(r) //nolint:bodyclose // Beginning closes the body. An http.Client would follow redirects, so none is used
	a.took = c.cfg.Clock.Now().Sub(a.at)
	if err != nil {
		a.text = whyNone(ctx, err).Stored()
		return a
	}
	a.status = got.StatusCode
	if !a.taken() {
		a.retryAfter = retryAfter(got.Header.Get("Retry-After"), c.cfg.Clock.Now())
	}
	ctx, done := c.payer(ctx, t)
	defer done()
	a.text = cleaned(outside.Webhook.Beginning(ctx, got.Body, puntuale.MaxWebhookAnswer))
	return a
}

// payer charges an answer to the owner of the webhook. If the owner has no memory left, the answer is not read. Its
// status still counts.
func (c *Caller) payer(ctx context.Context, t *puntuale.WebhookTarget) (_ context.Context, done func()) {
	if t.Client == 0 {
		return c.cfg.Memory.Partner(ctx, t.Partner)
	}
	return c.cfg.Memory.Client(ctx, t.Client)
}

// sendToChatwoot sends an event to Chatwoot, with several requests.
func (c *Caller) sendToChatwoot(ctx context.Context, t *puntuale.WebhookTarget, e *puntuale.Event, token string, repeat bool, a *answer) {
	if c.cfg.Chatwoot == nil {
		a.text = puntuale.Because(puntuale.ReasonWebhookUnreachable).Stored()
		return
	}
	got, err := c.cfg.Chatwoot.SendEvent(ctx, t, token, e, repeat)
	now := c.cfg.Clock.Now()
	a.took = now.Sub(a.at)
	if err != nil {
		a.text = whyNone(ctx, err).Stored()
		return
	}
	a.status, a.text, a.noCall = got.Status, cleaned([]byte(got.Text)), got.Status == http.StatusNoContent
	if !a.taken() {
		a.retryAfter = retryAfter(got.RetryAfter, now)
	}
}

// signed returns the request that a receiver gets, with its signature.
func signed(secrets [][]byte, t *puntuale.WebhookTarget, e *puntuale.Event, at time.Time) puntuale.WebhookRequest {
	id, body := eventjson.ID(e), eventjson.Body(e, t.Client == 0)
	return puntuale.WebhookRequest{Body: body, Header: []puntuale.HeaderField{
		{Name: "Content-Type", Value: "application/json"},
		{Name: "User-Agent", Value: "Puntuale"},
		{Name: "Webhook-Id", Value: id},
		{Name: "Webhook-Timestamp", Value: strconv.FormatInt(at.Unix(), 10)},
		{Name: "Webhook-Signature", Value: signature(secrets, id, at, body)},
	}}
}

// Request returns the request of an attempt without sending it.
func (c *Caller) Request(t puntuale.WebhookTarget, e puntuale.Event, at time.Time) (puntuale.WebhookRequest, error) {
	secrets, err := c.secrets(&t, at)
	if err != nil {
		return puntuale.WebhookRequest{}, err
	}
	return signed(secrets, &t, &e, at), nil
}

// lookupWithin is how long Refuses waits for DNS.
const lookupWithin = 2 * time.Second

// Refuses checks the text of an address. Each attempt checks the host's IP address, because the IP address of a name may
// change. A name in an address with http must lead into a network in which http is allowed. If DNS does not answer,
// Refuses cannot tell.
func (c *Caller) Refuses(ctx context.Context, address string) puntuale.ReasonCode {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	ip, numeric := media.LiteralAddress(u.Hostname())
	switch {
	case numeric && media.Permitted(ip, c.cfg.Allow):
		return ""
	case numeric && !media.IsPublic(ip):
		return puntuale.FaultWebhookPrivate
	case u.Scheme == "http" && (numeric || len(c.cfg.Allow) == 0 || c.leadsOutside(ctx, u.Hostname())):
		return puntuale.FaultWebhookNotHTTPS
	}
	return ""
}

// leadsOutside reports whether a name leads only to addresses outside of the allowed networks.
func (c *Caller) leadsOutside(ctx context.Context, host string) bool {
	puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	all, err := c.cfg.Lookup(ctx, "ip", host)
	return err == nil && !slices.ContainsFunc(all, func(ip netip.Addr) bool { return media.Permitted(ip, c.cfg.Allow) })
}

// secrets returns the signing keys: the present key, and also the earlier key until that key expires.
func (c *Caller) secrets(t *puntuale.WebhookTarget, now time.Time) (all [][]byte, err error) {
	sealed := [][]byte{t.Secret.Present}
	if len(t.Secret.FormerSecret) > 0 && now.Before(t.Secret.Until) {
		sealed = append(sealed, t.Secret.FormerSecret)
	}
	for _, s := range sealed {
		key, err := c.cfg.Unseal(&t.Webhook, s)
		if err != nil {
			return nil, err
		}
		all = append(all, key)
	}
	return all, nil
}

// cleaned replaces bytes that databases refuse, and cuts the text to [puntuale.MaxWebhookAnswer] bytes.
func cleaned(text []byte) string {
	clean := strings.ReplaceAll(strings.ToValidUTF8(string(text), "?"), "\x00", "?")
	return clean[:min(len(clean), puntuale.MaxWebhookAnswer)]
}

// whyNone returns why there was no answer. The reason contains no address.
func whyNone(ctx context.Context, err error) puntuale.Reason {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network *net.OpError
	var timeout net.Error
	var invalid *url.Error
	var large *outside.TooLargeError
	switch {
	case errors.As(err, &large):
		return puntuale.Because(puntuale.ReasonAnswerTooLarge)
	case puntuale.CodeOf(err) == puntuale.CodeOverloaded, puntuale.CodeOf(err) == puntuale.CodeRateLimited: // no memory for the answer
		return puntuale.Because(puntuale.ReasonWebhookTimeout)
	case media.Forbidden(err) || errors.As(err, &invalid):
		return puntuale.Because(puntuale.ReasonWebhookAddress)
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert):
		return puntuale.Because(puntuale.ReasonWebhookCertificate)
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return puntuale.Because(puntuale.ReasonWebhookTimeout)
	case errors.As(err, &network) && network.Op == "dial":
		return puntuale.Because(puntuale.ReasonWebhookUnreachable)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), network != nil:
		return puntuale.Because(puntuale.ReasonWebhookClosed)
	}
	return puntuale.Because(puntuale.ReasonWebhookGarbage)
}
