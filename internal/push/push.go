package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/SherClockHolmes/webpush-go"
	"golang.org/x/sync/errgroup"

	"puntuale"
	"puntuale/internal/clock"
)

const (
	claimed  = 64               // devices of one claim
	atOnce   = 16               // calls to push services
	within   = 10 * time.Second // the time limit of each call
	endWrite = 5 * time.Second  // the time to record the result, also while the server stops

	keptFor   = time.Hour // how long the push service keeps a push for a device that is switched off
	longest   = time.Hour // the longest wait between two tries
	maxAnswer = 4 << 10   // bytes that are read of one answer
)

// topic makes a push service keep only the last of the pushes that a device has not received.
const topic = "due"

// Results of pushes, for figures.
const (
	Arrived = "arrived"
	Gone    = "gone"
	Failed  = "failed"
)

// Config is what a [Notifier] needs.
type Config struct {
	Store     puntuale.PushStore
	Key       Key
	Sender    string // an https address of the sender, for the people who run push services
	Open      func(session puntuale.SessionID, target []byte) ([]byte, error)
	Transport http.RoundTripper // the way to push services; it must lead to public addresses only
	Observe   func(result string)
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Notifier tells devices. It may be used by many goroutines and on many nodes at once: only one node sends each push.
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

// Round sends the pushes that are due now. A failed push is no error, because it is tried again later. Each push is sent at most once; a
// crash may lose it.
func (n *Notifier) Round(ctx context.Context) error {
	for {
		all, err := n.cfg.Store.ClaimPushes(ctx, n.cfg.Clock.Now(), claimed)
		var sending errgroup.Group
		sending.SetLimit(atOnce)
		for _, p := range all {
			sending.Go(func() error { return n.sendPush(ctx, p) })
		}
		if err := errors.Join(err, sending.Wait()); err != nil || len(all) < claimed || ctx.Err() != nil {
			return err
		}
	}
}

// sendPush sends one push and records how it ended.
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

// send makes one try to send a push. It returns the result, and how long the push service asks to wait.
func (n *Notifier) send(ctx context.Context, p puntuale.Push) (end puntuale.PushOutcome, wait time.Duration, err error) {
	plain, err := n.cfg.Open(p.Session, p.Target)
	if err != nil {
		return puntuale.PushUnsubscribed, 0, err // nobody can read it any more
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
	answer, err := webpush.SendNotificationWithContext(ctx, text,
		&webpush.Subscription{Endpoint: target.Endpoint, Keys: webpush.Keys{P256dh: target.P256dh, Auth: target.Auth}},
		&webpush.Options{
			HTTPClient: n.http, Subscriber: n.cfg.Sender, Topic: topic, TTL: int(keptFor / time.Second), Urgency: webpush.UrgencyHigh,
			VAPIDPublicKey: n.cfg.Key.Public(), VAPIDPrivateKey: encode(n.cfg.Key.private.Bytes()),
		})
	if err != nil {
		return puntuale.PushFailed, 0, withoutAddress(err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return puntuale.PushArrived, 0, nil
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		return puntuale.PushUnsubscribed, 0, errors.New(answer.Status)
	}
	return puntuale.PushFailed, n.retryAfter(answer.Header.Get("Retry-After")), fmt.Errorf("the push service answered %s", answer.Status)
}

// retryAfter reads how long a push service asks to wait.
func (n *Notifier) retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(n.cfg.Clock.Now())
	}
	return 0
}

// withoutAddress removes the address from an error, because anybody who knows the address can send to the device.
func withoutAddress(err error) error {
	if called, ok := errors.AsType[*url.Error](err); ok {
		return called.Err
	}
	return err
}
