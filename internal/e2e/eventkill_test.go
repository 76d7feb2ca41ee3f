//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// eventSteps is how many messages one start makes. Each message makes an event when it is sent.
const eventSteps = 10

// TestEventsKilled kills the server with SIGKILL ten times. Meanwhile calls are made, messages leave, and events go to
// two webhooks: a client's, and its partner's. At the end, each webhook has got each event at least once. All copies of
// an event have the same id. With PUNTUALE_LONG=1, there are 100,000 events.
func TestEventsKilled(t *testing.T) {
	beside(t)
	starts, kills := 200, 10
	if long {
		starts = 10_000
	}
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		s := serve(t, database, "--lease", "2s", "--webhook-allow", "127.0.0.0/8")
		partner := createPartner(t, database)
		var steps []any
		for i := range eventSteps {
			steps = append(steps, step(fmt.Sprintf("%d", i), 0, "seconds"))
		}
		who := createTenant(t, s.base, partner, "full", steps...)
		own, wide := newEventReceiver(t, seed), newEventReceiver(t, seed+1)
		own.subscribe(s.base, who.key)
		wide.subscribe(s.base, partner)

		calls := startMany(s.base, who, starts)
		total := starts * eventSteps
		for n := range kills {
			reached := own.taken() + random.IntN(max(1, (total-own.taken())/(kills-n)))
			for began := time.Now(); own.taken() < reached && time.Since(began) < time.Minute; {
				time.Sleep(5 * time.Millisecond)
			}
			s.kill()
			s.start()
		}
		ids := calls.wait()
		if len(ids) != total {
			t.Fatalf("%d messages were made, not %d", len(ids), total)
		}
		within := time.Minute
		if long {
			within = 20 * time.Minute
		}
		var found map[string]detail
		last := time.Time{}
		eventually(t, within, "every event came", func() bool {
			if own.taken() < total*9/10 || time.Since(last) < 2*time.Second {
				return false
			}
			last = time.Now()
			found = details(t, s.base, who.key, ids)
			for id, m := range found {
				if m.State == "PENDING" && !uncertain(m) || !own.hasEventOf(id, m) || !wide.hasEventOf(id, m) {
					return false
				}
			}
			return own.hasAllNumbers() && wide.hasAllNumbers()
		})
		own.verify(found)
		wide.verify(found)
		t.Logf("%d kills, %d messages: %d and %d events in %d and %d deliveries", kills, total, own.taken(), wide.taken(), own.calls.Load(), wide.calls.Load())
	})
}

// startedCalls are calls that start runs. Each call is repeated under its idempotency key until it is answered.
type startedCalls struct {
	all sync.WaitGroup
	mu  sync.Mutex
	ids []string
}

func startMany(base string, who tenant, starts int) *startedCalls {
	return startSome([]string{base}, who, 0, starts)
}

// startSome makes the starts whose numbers are larger than the argument from, and at most the argument to. Each start
// goes to a random server.
func startSome(bases []string, who tenant, from, to int) *startedCalls {
	c := &startedCalls{}
	var next atomic.Int64
	next.Store(int64(from))
	for range 8 {
		c.all.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(to) {
					return
				}
				var made struct{ ID []string }
				for {
					a, err := call("POST", bases[rand.IntN(len(bases))]+"/api/start/"+who.sequence, who.key, map[string]any{"phone": fmt.Sprintf("+39349%07d", n)}, "Idempotency-Key", fmt.Sprint(n))
					if err == nil && a.status == http.StatusOK && json.Unmarshal(a.body, &made) == nil {
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				c.mu.Lock()
				c.ids = append(c.ids, made.ID...)
				c.mu.Unlock()
			}
		})
	}
	return c
}

func (c *startedCalls) wait() []string {
	c.all.Wait()
	return c.ids
}

// receivedEvent is an event as its receiver got it.
type receivedEvent struct {
	kind    string
	message string
	seq     int64
	times   int
	first   time.Time
}

// eventReceiver stores a ledger of the events that it got. It refuses some events when they come for the first time.
type eventReceiver struct {
	t     *testing.T
	url   string
	calls atomic.Int64

	mu      sync.Mutex
	library *standardwebhooks.Webhook
	random  *rand.Rand
	refused map[string]bool
	events  map[string]*receivedEvent // the events by their webhook-id
	ids     map[string]string         // the webhook-id of each event, by its type and message
	highest int64
	wrong   []string
}

func newEventReceiver(t *testing.T, seed uint64) *eventReceiver {
	r := &eventReceiver{t: t, random: rand.New(rand.NewPCG(seed, 7)), refused: map[string]bool{}, events: map[string]*receivedEvent{}, ids: map[string]string{}}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil { // the server was killed during this request
			return
		}
		w.WriteHeader(r.take(request.Header, body))
	}))
	t.Cleanup(h.Close)
	r.url = h.URL + "/events"
	return r
}

func (r *eventReceiver) subscribe(base, key string) {
	var made struct{ Secret string }
	r.mu.Lock() // waits until the test has set the secret
	defer r.mu.Unlock()
	must(r.t, "POST", base+"/api/webhooks", key, map[string]any{"url": r.url}).into(r.t, &made)
	library, err := standardwebhooks.NewWebhook(made.Secret)
	if err != nil {
		r.t.Fatal(err)
	}
	r.library = library
}

func (r *eventReceiver) take(header http.Header, body []byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Add(1)
	id := header.Get("webhook-id")
	var e struct {
		Type string
		Data struct {
			Message int64 `json:"message_id"`
			Seq     int64
		}
	}
	if err := r.library.Verify(body, header); err != nil {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %v", id, err))
	}
	if err := json.Unmarshal(body, &e); err != nil || !strings.HasSuffix(id, "_"+strconv.FormatInt(e.Data.Seq, 10)) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %s", id, body))
	}
	if !r.refused[id] && r.random.IntN(100) == 0 {
		r.refused[id] = true
		return http.StatusInternalServerError
	}
	name := e.Type + " " + strconv.FormatInt(e.Data.Message, 10)
	if before := r.ids[name]; e.Data.Message != 0 && before != "" && before != id {
		r.wrong = append(r.wrong, fmt.Sprintf("%s has the ids %s and %s", name, before, id))
	}
	r.ids[name] = id
	if r.events[id] == nil {
		r.events[id] = &receivedEvent{kind: e.Type, message: strconv.FormatInt(e.Data.Message, 10), seq: e.Data.Seq, first: time.Now()}
	}
	r.events[id].times++
	r.highest = max(r.highest, e.Data.Seq)
	return http.StatusNoContent
}

func (r *eventReceiver) taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// hasEventOf reports whether the event for a message's state has come.
func (r *eventReceiver) hasEventOf(id string, m detail) bool {
	kind := map[string]string{"COMPLETED": "message.sent", "FAILED": "message.failed", "CANCELLED": "message.cancelled"}[m.State]
	if uncertain(m) {
		kind = "message.uncertain"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[kind+" "+id] != ""
}

// hasAllNumbers reports whether every number up to the highest has come. A killed server leaves no gaps in the numbers.
func (r *eventReceiver) hasAllNumbers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.events)) == r.highest
}

func (r *eventReceiver) verify(found map[string]detail) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wrong[:min(10, len(r.wrong))] {
		r.t.Error(w)
	}
	highest, again := 0, 0
	for _, e := range r.events {
		if highest = max(highest, e.times); e.times > 1 {
			again++
		}
		if _, known := found[e.message]; strings.HasPrefix(e.kind, "message.") && !known {
			r.t.Errorf("an event of message %s, which nobody made", e.message)
		}
	}
	r.t.Logf("%d events, %d of them more than once, at most %d times; %d were refused first", len(r.events), again, highest, len(r.refused))
}
