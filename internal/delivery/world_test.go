package delivery_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/delivery"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// jumpingClock is the machine's clock, moved forward by the duration ahead.
type jumpingClock struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *jumpingClock) Now() time.Time       { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }
func (c *jumpingClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// world is a database with clients. Their events go to receivers of the test.
type world struct {
	*storetest.World
	t     testing.TB
	clock *jumpingClock
	at    time.Time
}

// The function named on runs a test on both databases.
func on(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			c := &jumpingClock{Clock: clock.System()}
			d.Config.Clock, d.Config.Logger = c, slog.New(slog.DiscardHandler)
			test(t, &world{World: storetest.NewWorld(t, d), t: t, clock: c, at: c.Now()})
		})
	}
}

// webhook creates a webhook of a client, with the secret of the tests.
func (w *world) webhook(c *storetest.Client, url string) puntuale.WebhookID {
	w.t.Helper()
	id, err := c.CreateWebhook(w.t.Context(), puntuale.Webhook{Client: c.ID, URL: url, Types: puntuale.AllEvents, Active: true, Created: w.clock.Now()},
		append([]byte("sealed:"), key...), w.clock.Now(), nil)
	if err != nil {
		w.t.Fatalf("create a webhook: %v", err)
	}
	return id
}

// emit writes n facts of a client, like the transactions that make facts.
func (w *world) emit(client puntuale.ClientID, n int) {
	w.t.Helper()
	if _, err := w.DB.SQL.ExecContext(w.t.Context(), `with recursive c(x) as (select 1 union all select x + 1 from c where x < $1)
 insert into outbox_fact (client_id, type, subject, detail, at) select $2, $3, x, '{"name":"Natale"}', $4 from c`,
		n, int64(client), int64(puntuale.EventCampaignDone), w.clock.Now().UnixMicro()); err != nil {
		w.t.Fatalf("write facts: %v", err)
	}
}

func (w *world) int(query string, args ...any) int64 { return w.Int(query, args...) }

// node contains the sender of one node.
type node struct {
	*delivery.Sender
	id puntuale.NodeID
}

// start starts the sender of a new node. The argument lease is the length of the node's lease.
func (w *world) start(st *store.Store, lease time.Duration, set func(*delivery.Config, *delivery.CallerConfig)) *node {
	w.t.Helper()
	id, err := st.Join(w.t.Context(), lease)
	if err != nil {
		w.t.Fatal(err)
	}
	calls := delivery.CallerConfig{Unseal: unseal, Clock: w.clock, Allow: loopback}
	cfg := delivery.Config{Store: st, Node: func() puntuale.NodeID { return id }, Clock: w.clock, Logger: slog.New(slog.DiscardHandler)}
	if set != nil {
		set(&cfg, &calls)
	}
	cfg.Caller = delivery.NewCaller(calls)
	n := &node{delivery.New(cfg), id}
	n.Start()
	w.t.Cleanup(func() { n.stop(w.t) })
	return n
}

func (n *node) stop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

const longLease = 1000 * time.Hour

// receiver is an HTTP server that accepts events and counts them.
type receiver struct {
	*httptest.Server
	t      testing.TB
	answer func(w http.ResponseWriter, r *http.Request, times int) // writes the answer; nil: the answer is status 204

	mu     sync.Mutex
	times  map[string]int
	first  map[string]time.Time
	wrong  int
	atOnce int
	most   int
}

func newReceiver(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, times int)) *receiver {
	l := &receiver{t: t, answer: answer, times: map[string]int{}, first: map[string]time.Time{}}
	library, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		t.Fatal(err)
	}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = library.VerifyIgnoringTimestamp(body, r.Header)
		}
		id := r.Header.Get("webhook-id")
		l.mu.Lock()
		if err != nil {
			l.wrong++
		}
		l.times[id]++
		if l.times[id] == 1 {
			l.first[id] = time.Now()
		}
		times := l.times[id]
		l.atOnce++
		l.most = max(l.most, l.atOnce)
		l.mu.Unlock()
		if l.answer != nil {
			l.answer(w, r, times)
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
		l.mu.Lock()
		l.atOnce--
		l.mu.Unlock()
	}))
	t.Cleanup(func() {
		l.CloseClientConnections()
		l.Close()
	})
	return l
}

func status(code int) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(code) }
}

// ledger returns how often each event came.
func (l *receiver) ledger() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.times)
}

// busiest returns the largest number of requests that the receiver had at the same time.
func (l *receiver) busiest() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

func (l *receiver) calls() (n int) {
	for _, times := range l.ledger() {
		n += times
	}
	return n
}

// has waits until n different events came.
func (l *receiver) has(n int, within time.Duration) {
	l.t.Helper()
	eventually(l.t, within, fmt.Sprintf("%d events at a receiver", n), func() bool { return len(l.ledger()) >= n })
}

// exactly checks that the client's events from 1 to n came, each at least once and at most limit times.
func (l *receiver) exactly(client puntuale.ClientID, n, limit int) {
	l.t.Helper()
	got := l.ledger()
	for seq := 1; seq <= n; seq++ {
		id := fmt.Sprintf("evt_%d_%d", client, seq)
		if got[id] < 1 || got[id] > limit {
			l.t.Errorf("%s came %d times", id, got[id])
		}
		delete(got, id)
	}
	if len(got) > 0 {
		l.t.Errorf("these came, too: %v", slices.Collect(maps.Keys(got)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong > 0 {
		l.t.Errorf("%d were not signed", l.wrong)
	}
}

// settled waits until as many deliveries are recorded as the argument done says, and no delivery waits.
func (w *world) settled(done int) {
	w.t.Helper()
	eventually(w.t, 20*time.Second, fmt.Sprintf("%d deliveries are recorded", done), func() bool {
		return w.int("select count(*) from delivery where state = 1") == int64(done)
	})
}

func eventually(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	if raced {
		within *= 3
	}
	for deadline := time.Now().Add(within); !condition(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
