package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/SherClockHolmes/webpush-go"
	"golang.org/x/sync/errgroup"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/outside"
)

const (
	claimed       = 64               // the most devices of one claim
	maxConcurrent = 16               // the most requests to push services at once
	within        = 10 * time.Second // the time limit of each request
	endWrite      = 5 * time.Second  // the time limit for recording the result, also while the server stops

	keptFor = time.Hour // how long the push service stores a push for a device that is off
	longest = time.Hour // the longest wait between two attempts
)

// topic is the same in all pushes. So a push service stores only the latest push for a device that is off.
const topic = "due"

// Results of pushes, for the metrics.
const (
	Arrived = "arrived"
	Gone    = "gone"
	Failed  = "failed"
)

// Config is the configuration of a [Notifier].
type Config struct {
	Store     Store
	Keys      *Keys
	Sender    string // an https address at which people who run push services can reach the sender
	Open      func(session puntuale.SessionID, target []byte) ([]byte, error)
	Transport http.RoundTripper    // must lead only to public addresses
	Memory    outside.MemoryGrants // pays for the answers of push services; nil: they are only bounded
	Observe   func(result string)
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Notifier sends pushes to devices. Many goroutines and nodes may use it at once, because only one node sends each
// push.
type Notifier struct {
	cfg  Config
	http *http.Client
}

// New returns a notifier.
func New(cfg Config) *Notifier {
	return &Notifier{cfg: cfg, http: &http.Client{
		Transport: cfg.Transport, Timeout: within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Round sends the pushes that are due now. A failed push is not an error, because it is sent again later. A crash may
// lose a push, but never repeats one.
func (n *Notifier) Round(ctx context.Context) error {
	for {
		all, err := n.cfg.Store.ClaimPushes(ctx, n.cfg.Clock.Now(), claimed)
		var sending errgroup.Group
		sending.SetLimit(maxConcurrent)
		for _, p := range all {
			sending.Go(func() error { return puntuale.Recovered(func() error { return n.sendPush(ctx, p) }) })
		}
		if err := errors.Join(err, sending.Wait()); err != nil || len(all) < claimed || ctx.Err() != nil {
			return err
		}
	}
}

// sendPush sends one push and records the result.
func (n *Notifier) sendPush(ctx context.Context, p puntuale.Push) error {
	end, wait, err := n.send(ctx, p)
	retryAt := n.cfg.Clock.Now().Add(min(max(wait, puntuale.PushEvery<<min(p.Failures, 10)), longest))
	result := map[puntuale.PushOutcome]string{puntuale.PushArrived: Arrived, puntuale.PushUnsubscribed: Gone, puntuale.PushFailed: Failed}[end]
	n.cfg.Observe(result)
	if end != puntuale.PushArrived {
		n.cfg.Logger.Info("a device could not be told of due messages", "device_id", int64(p.Device), "session_id", int64(p.Session), "result", result, "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWrite)
	defer cancel()
	return n.cfg.Store.EndPush(ctx, p, end, retryAt)
}

// send makes one attempt. It returns the result, and how long the push service requests to wait.
func (n *Notifier) send(ctx context.Context, p puntuale.Push) (end puntuale.PushOutcome, wait time.Duration, err error) {
	plain, err := n.cfg.Open(p.Session, p.Target)
	if err != nil {
		return puntuale.PushUnsubscribed, 0, err // the subscription can never be decrypted again
	}
	var target struct {
		Endpoint string `json:"endpoint"`
		P256dh   string `json:"p256dh"`
		Auth     string `json:"auth"`
	}
	if err := json.Unmarshal(plain, &target); err != nil {
		return puntuale.PushUnsubscribed, 0, err
	}
	text, err := json.Marshal(map[string]string{"session": p.Session.String()})
	if err != nil {
		return puntuale.PushFailed, 0, err
	}
	keys, err := n.cfg.Keys.all(ctx)
	if err != nil {
		return puntuale.PushFailed, 0, err
	}
	to := &webpush.Subscription{Endpoint: target.Endpoint, Keys: webpush.Keys{P256dh: target.P256dh, Auth: target.Auth}}
	for _, key := range keys {
		if end, wait, err = n.sendWith(ctx, p.Client, to, text, key); !errors.Is(err, errOtherKey) {
			return end, wait, err
		}
	}
	return end, wait, err
}

// errOtherKey says that the push service may expect another key, because the browser subscribed for that one.
var errOtherKey = errors.New("the push service does not accept the key")

// sendWith makes one attempt with one key.
func (n *Notifier) sendWith(ctx context.Context, client puntuale.ClientID, to *webpush.Subscription, text []byte, key Key) (end puntuale.PushOutcome, wait time.Duration, err error) {
	answer, err := webpush.SendNotificationWithContext(ctx, text, to, &webpush.Options{
		HTTPClient: n.http, Subscriber: n.cfg.Sender, Topic: topic, TTL: int(keptFor / time.Second), Urgency: webpush.UrgencyHigh,
		VAPIDPublicKey: key.Public(), VAPIDPrivateKey: encode(key.private.Bytes()),
	})
	if err != nil {
		return puntuale.PushFailed, 0, withoutAddress(err)
	}
	defer answer.Body.Close()
	ctx, done := n.cfg.Memory.Client(ctx, client)
	defer done()
	outside.Push.Beginning(ctx, answer.Body, 0) // the status is enough
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return puntuale.PushArrived, 0, nil
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		return puntuale.PushUnsubscribed, 0, errors.New(answer.Status)
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return puntuale.PushFailed, n.retryAfter(answer.Header.Get("Retry-After")), fmt.Errorf("%w: it answered %s", errOtherKey, answer.Status)
	}
	return puntuale.PushFailed, n.retryAfter(answer.Header.Get("Retry-After")), fmt.Errorf("the push service answered %s", answer.Status)
}

// retryAfter parses how long a push service requests to wait.
func (n *Notifier) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(n.cfg.Clock.Now())
	}
	return 0
}

// withoutAddress removes the address from an error, because anyone with the address can send to the device.
func withoutAddress(err error) error {
	if called, ok := errors.AsType[*url.Error](err); ok {
		return called.Err
	}
	return err
}
