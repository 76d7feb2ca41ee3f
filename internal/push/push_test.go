package push_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/media"
	"puntuale/internal/push"
	"puntuale/internal/push/pushtest"
)

const sender = "https://messages.example.com"

// secrets is a store of secrets in memory.
type secrets struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *secrets) Secret(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[name], nil
}

func (s *secrets) SetSecret(_ context.Context, name string, old, value []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.kept[name] == nil) != (old == nil) {
		return false, nil
	}
	s.kept[name] = value
	return true, nil
}

// world contains a notifier and its devices. It is also the notifier's store.
type world struct {
	*push.Notifier
	*pushtest.Service
	secrets *secrets
	vault   *auth.Vault
	key     string // the present public key
	clock   *clock.Fake
	logged  strings.Builder

	mu      sync.Mutex
	due     []puntuale.Push
	ended   map[puntuale.DeviceID]puntuale.PushOutcome
	again   map[puntuale.DeviceID]time.Duration
	results map[string]int
	paid    []string // who paid for the answers
}

// poor is a memory grant of a payer that has no memory left.
type poor struct{}

func (poor) Take(int64) error { return puntuale.Overloaded(0) }

func newWorld(t *testing.T, way func(*world) http.RoundTripper) *world {
	t.Helper()
	vault, err := auth.NewVault(make([]byte, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Service: pushtest.New(t), vault: vault, clock: clock.NewFake(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)),
		ended: map[puntuale.DeviceID]puntuale.PushOutcome{}, again: map[puntuale.DeviceID]time.Duration{}, results: map[string]int{},
	}
	w.secrets = &secrets{kept: map[string][]byte{}}
	keys, err := push.OpenKeys(t.Context(), w.secrets, vault, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	if w.key, err = keys.Public(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Notifier = push.New(push.Config{
		Store: w, Keys: keys, Sender: sender, Transport: way(w), Clock: w.clock, Logger: slog.New(slog.NewTextHandler(&w.logged, nil)),
		Open: func(s puntuale.SessionID, target []byte) ([]byte, error) {
			return vault.Open("push", s.SealPlace(), target)
		},
		Memory: func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.paid = append(w.paid, fmt.Sprint(side, " ", id))
			return poor{}, func() {}
		},
		Observe: func(result string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.results[result]++
		},
	})
	return w
}

func (w *world) ClaimPushes(_ context.Context, _ time.Time, limit int) ([]puntuale.Push, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(limit, len(w.due))
	claimed := w.due[:n]
	w.due = w.due[n:]
	return claimed, nil
}

func (w *world) EndPush(_ context.Context, p puntuale.Push, end puntuale.PushOutcome, retryAt time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[p.Device], w.again[p.Device] = end, retryAt.Sub(w.clock.Now())
	return nil
}

// subscribe adds a browser's device with due messages.
func (w *world) subscribe(t *testing.T, id puntuale.DeviceID, failures int, change ...func(*pushtest.Browser)) {
	t.Helper()
	b := w.Subscribe(w.key)
	for _, f := range change {
		f(b)
	}
	plain, err := json.Marshal(map[string]string{"endpoint": b.Endpoint, "p256dh": b.P256dh, "auth": b.Auth})
	if err != nil {
		t.Fatal(err)
	}
	const session = puntuale.SessionID(31)
	w.due = append(w.due, puntuale.Push{Client: 1, Device: id, Session: session, Failures: failures, Target: w.vault.Seal("push", session.SealPlace(), plain)})
}

func (w *world) round(t *testing.T) {
	t.Helper()
	if err := w.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func direct(w *world) http.RoundTripper { return w.Transport() }

// TestPush: a strict push service accepts each push. The decrypted text contains only the session.
func TestPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, direct)
	const devices = 150 // more than one claim contains
	for id := range puntuale.DeviceID(devices) {
		w.subscribe(t, id, 0)
	}
	w.round(t)
	browsers := map[*pushtest.Browser]bool{}
	for _, r := range w.Received() {
		browsers[r.Browser] = true
		if r.Payload != `{"session":"31"}` || r.TTL != 3600 || r.Urgency != "high" || r.Topic == "" || r.Sender != sender {
			t.Fatalf("received %+v", r)
		}
	}
	if len(browsers) != devices || len(w.Received()) != devices || w.results[push.Arrived] != devices {
		t.Errorf("%d browsers, %d pushes, %v", len(browsers), len(w.Received()), w.results)
	}
	if len(w.paid) != devices || w.paid[0] != "client 1" { // the client has no memory left, yet the status counts
		t.Errorf("%v paid for the answers", w.paid)
	}
}

// TestPushIsRefused: a subscription that no longer exists is deleted. After a temporary failure the waits between
// attempts grow, and no attempt comes before the time that the service requests.
func TestPushIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status   int
		after    string
		failures int
		end      puntuale.PushOutcome
		again    time.Duration // the wait after a failure
	}{
		{http.StatusNotFound, "", 0, puntuale.PushUnsubscribed, 0},
		{http.StatusGone, "", 3, puntuale.PushUnsubscribed, 0},
		{http.StatusTooManyRequests, "", 0, puntuale.PushFailed, time.Minute},
		{http.StatusTooManyRequests, "600", 0, puntuale.PushFailed, 10 * time.Minute},
		{http.StatusTooManyRequests, "-5", 1, puntuale.PushFailed, 2 * time.Minute},
		{http.StatusServiceUnavailable, "Mon, 23 Nov 2026 09:05:00 GMT", 0, puntuale.PushFailed, 5 * time.Minute},
		{http.StatusServiceUnavailable, "99999999999999", 0, puntuale.PushFailed, time.Hour},
		{http.StatusInternalServerError, "", 4, puntuale.PushFailed, 16 * time.Minute},
		{http.StatusForbidden, "", 90, puntuale.PushFailed, time.Hour},
		{http.StatusTemporaryRedirect, "", 0, puntuale.PushFailed, time.Minute},
	} {
		w := newWorld(t, direct)
		w.Answer(func(*pushtest.Browser) (int, string) { return c.status, c.after })
		w.subscribe(t, 7, c.failures)
		w.round(t)
		if w.ended[7] != c.end || c.again > 0 && w.again[7] != c.again {
			t.Errorf("%d %q: %v, again after %s", c.status, c.after, w.ended[7], w.again[7])
		}
		if len(w.Received()) > 0 {
			t.Errorf("%d: received", c.status)
		}
	}
}

// TestHostileTargets: any caller may store any target. No target leads into our network or delays other pushes, and no
// address is logged.
func TestHostileTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) http.RoundTripper { return media.Transport(nil) })
	w.subscribe(t, 1, 0) // its address is on 127.0.0.1, which is refused
	w.subscribe(t, 2, 0, func(b *pushtest.Browser) { b.Endpoint = "http://169.254.169.254/latest" })
	w.subscribe(t, 3, 0, func(b *pushtest.Browser) { b.P256dh = strings.Repeat("A", 87) }) // this key is not a point of the curve
	w.subscribe(t, 4, 0, func(b *pushtest.Browser) { b.Auth = "%" })
	w.due = append(w.due, puntuale.Push{Device: 5, Session: 31, Target: []byte("not sealed")})
	w.round(t)
	for id, want := range map[puntuale.DeviceID]puntuale.PushOutcome{
		1: puntuale.PushFailed, 2: puntuale.PushFailed, 3: puntuale.PushFailed, 4: puntuale.PushFailed, 5: puntuale.PushUnsubscribed,
	} {
		if w.ended[id] != want {
			t.Errorf("device %d: %v, want %v", id, w.ended[id], want)
		}
	}
	if len(w.Received()) != 0 || strings.Contains(w.logged.String(), "/send/") || strings.Contains(w.logged.String(), "/latest") {
		t.Errorf("received %v, logged:\n%s", w.Received(), w.logged.String())
	}
}

// TestStop: if the notifier stops during a push, the push counts as failed, so that another node sends it.
func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, direct)
	w.subscribe(t, 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	w.Answer(func(*pushtest.Browser) (int, string) { cancel(); return http.StatusServiceUnavailable, "" })
	if err := w.Round(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if w.ended[1] != puntuale.PushFailed {
		t.Errorf("ended %v", w.ended)
	}
}

// TestKey: nodes that start at once get the same key. The key is sealed and does not change.
func TestKey(t *testing.T) {
	t.Parallel()
	vault, err := auth.NewVault(make([]byte, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	kept := &secrets{kept: map[string][]byte{}}
	public := make([]string, 8)
	var nodes sync.WaitGroup
	for i := range public {
		nodes.Go(func() {
			keys, err := push.OpenKeys(t.Context(), kept, vault, clock.System())
			if err == nil {
				public[i], err = keys.Public(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
	for _, k := range public {
		if k != public[0] || len(k) != 87 {
			t.Errorf("%s, and %s", k, public[0])
		}
	}
	for name, value := range kept.kept {
		if _, err := vault.Open(name, name, value); err != nil || len(value) < 32+16 {
			t.Errorf("%s is not sealed: %v", name, err)
		}
		kept.kept[name][0] ^= 1
	}
	if _, err := push.OpenKeys(t.Context(), kept, vault, clock.System()); err == nil {
		t.Error("a damaged key is used")
	}
}

// TestReplaceKey: after a replacement, phones that subscribed under the former key are still told, and phones that subscribe
// under the new one, too. A key that was replaced twice ends.
func TestReplaceKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) http.RoundTripper { return w.Transport() })
	if _, err := push.ReplaceKey(t.Context(), &secrets{kept: map[string][]byte{}}, w.vault); !errors.Is(err, push.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	first := w.key
	for i, want := range []map[puntuale.DeviceID]puntuale.PushOutcome{
		{1: puntuale.PushArrived, 2: puntuale.PushArrived}, {1: puntuale.PushFailed, 2: puntuale.PushArrived},
	} {
		key, err := push.ReplaceKey(t.Context(), w.secrets, w.vault)
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Minute)
		w.key = first
		w.subscribe(t, 1, 0)
		w.key = key.Public()
		w.subscribe(t, 2, 0)
		if err := w.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(w.ended, want) {
			t.Errorf("after %d replacements: %v, want %v", i+1, w.ended, want)
		}
	}
}
