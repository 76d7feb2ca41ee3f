//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A load consists of callers that start, send, repeat, stop and cancel on one or several servers, and of the ledger of
// their answers. If a call may have an idempotency key, the caller repeats it with the same key until it is answered,
// as a careful integrator does. So at the end the ledger contains every call that had an effect. verify compares the
// ledger with the simulated network's ledger and with the rows.
type load struct {
	mix
	bases   []string
	tenants []tenant
	begun   time.Time
	stop    chan struct{}
	workers sync.WaitGroup

	uncounted bool // an earlier version, which counts no results, wrote some rows

	mu     sync.Mutex
	book   []*promise
	wrong  []string
	starts int // how many starts were acknowledged
	calls  int // how many requests were sent, including repeats
	repeat int // how many requests repeated a call that was already answered
}

// promise is one message, as the caller knows it from the answer to its call.
type promise struct {
	id        string
	tenant    tenant
	text      string
	after     time.Duration // the message is due this long after the server accepted its call
	at        time.Time     // due time of the message; zero: the field named after says when the message is due
	asked     bool          // a stop or cancel may concern the message
	cancelled bool          // an answer with status 200 named the message as cancelled
	doubted   bool          // a stop or cancel that may concern the message was never answered
}

// far is longer than any test takes.
const far = time.Hour

// loadSteps lists when the messages of a load's sequence are due, after the start.
var loadSteps = []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, far}

// loadTenants makes clients, each with a session of its own and a sequence with loadSteps.
func loadTenants(t *testing.T, base, partnerKey string, clients int) (tenants []tenant) {
	t.Helper()
	var steps []any
	for i, after := range loadSteps {
		steps = append(steps, step(fmt.Sprintf("%d {{n}}", i), int(after/time.Second), "seconds"))
	}
	for range clients {
		tenants = append(tenants, createTenant(t, base, partnerKey, "full", steps...))
	}
	return tenants
}

// callers is how many callers call at the same time. They are enough to keep several nodes busy. More callers would
// overload the machine, and messages would be late.
const callers = 12

// mix says how many callers there are, and what they call.
type mix struct {
	callers int
	singles int // one of this many calls creates a single message, and the others start runs; 0: all start runs

	// Of this many calls that create messages, one is stopped immediately, one is stopped a second later, and one is
	// cancelled.
	stops int
}

// everything has all kinds of calls. manyStarts makes at least 300 starts a second, if the machine is fast enough. It
// needs many callers, because each caller waits for its answers, and pauses between calls.
var (
	everything = mix{callers: callers, singles: 4, stops: 8}
	manyStarts = mix{callers: 150, stops: 32}
)

// newLoad begins a load with the mix everything.
func newLoad(seed uint64, tenants []tenant, bases ...string) *load {
	return newLoadOf(everything, seed, tenants, bases...)
}

// newLoadOf begins a load with a given mix.
func newLoadOf(m mix, seed uint64, tenants []tenant, bases ...string) *load {
	l := &load{mix: m, bases: bases, tenants: tenants, begun: time.Now(), stop: make(chan struct{})}
	for w := range m.callers {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		l.workers.Go(func() {
			for n := 0; l.rest(time.Duration(random.IntN(40)) * time.Millisecond); n++ {
				c := caller{load: l, random: random, name: fmt.Sprintf("%d-%d", w, n), phone: fmt.Sprintf("+39347%03d%04d", w, n),
					tenant: l.tenants[random.IntN(len(l.tenants))]}
				c.run()
			}
		})
	}
	return l
}

// end ends the load after every call in progress was answered.
func (l *load) end() {
	close(l.stop)
	l.workers.Wait()
}

// rest waits for the time d, and reports whether the load continues.
func (l *load) rest(d time.Duration) bool {
	select {
	case <-l.stop:
		return false
	case <-time.After(d):
		return true
	}
}

// caller makes calls about one recipient, one call after the other.
type caller struct {
	*load
	random *rand.Rand
	name   string // appears in texts; different for each caller
	phone  string
	tenant tenant
}

func (c *caller) run() {
	var made []*promise
	if c.singles > 0 && c.random.IntN(c.singles) == 0 {
		made = c.single()
	} else {
		made = c.start()
	}
	c.mu.Lock()
	c.book = append(c.book, made...)
	c.mu.Unlock()
	switch c.random.IntN(c.stops) {
	case 0: // the caller stops the run immediately
		c.stopRun(made)
	case 1: // the caller stops the run at about the time when a message is due
		c.rest(time.Duration(900+c.random.IntN(200)) * time.Millisecond)
		c.stopRun(made)
	case 2:
		c.cancel(made)
	}
}

func (c *caller) start() (made []*promise) {
	ids := c.create("/api/start/"+c.tenant.sequence, map[string]any{"phone": c.phone, "n": c.name})
	if len(ids) != len(loadSteps) {
		c.fault("a start of %d steps answered the ids %v", len(loadSteps), ids)
		return nil
	}
	for i, id := range ids {
		made = append(made, &promise{id: id, tenant: c.tenant, text: fmt.Sprintf("%d %s", i, c.name), after: loadSteps[i]})
	}
	c.mu.Lock()
	c.starts++
	c.mu.Unlock()
	return made
}

// single sends one message that is due at a time up to three seconds later.
func (c *caller) single() []*promise {
	at := time.Now().Add(time.Duration(c.random.IntN(3000)) * time.Millisecond).UTC().Truncate(time.Microsecond)
	text := "single " + c.name
	ids := c.create("/api/messages", map[string]any{"phone": c.phone, "text": text, "date": at.Format(stamp)})
	if len(ids) != 1 {
		c.fault("a single message has the ids %v", ids)
		return nil
	}
	return []*promise{{id: ids[0], tenant: c.tenant, text: text, at: at}}
}

// create repeats the call until it is answered. Sometimes it repeats the call once more: the same key must give the
// same answer.
func (c *caller) create(path string, body any) []string {
	key := []string{"Idempotency-Key", c.name}
	first := c.until("POST", path, body, key...)
	ids := c.ids(first)
	if c.random.IntN(8) > 0 || first.status != http.StatusOK {
		return ids
	}
	again := c.until("POST", path, body, key...)
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
		c.fault("a call was repeated under its key: %s, then (%d) %s", first.body, again.status, again.body)
	}
	c.mu.Lock()
	c.repeat++
	c.mu.Unlock()
	return ids
}

// stopRun stops the sequence for the recipient. A stop does not concern single messages.
func (c *caller) stopRun(made []*promise) {
	made = slices.DeleteFunc(slices.Clone(made), func(p *promise) bool { return !p.at.IsZero() })
	c.take("/api/stop/"+c.tenant.sequence, map[string]any{"phone": c.phone}, made, c.ids)
}

func (c *caller) cancel(made []*promise) {
	c.take("/api/messages/cancel/pending", map[string]any{"phones": []string{c.phone}}, made, c.cancelledIDs)
}

// take repeats a stop or cancel until it is answered. If an answer was lost, its call may have cancelled messages that
// no later answer names.
func (c *caller) take(path string, body any, made []*promise, read func(answer) []string) {
	for _, p := range made {
		p.asked = true
	}
	for {
		a, ok := c.try("POST", path, body)
		if !ok {
			for _, p := range made {
				p.doubted = true
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		named := map[string]bool{}
		for _, id := range read(a) {
			named[id] = true
		}
		for _, p := range made {
			p.cancelled = p.cancelled || named[p.id]
			delete(named, p.id)
		}
		if len(named) > 0 {
			c.fault("cancelled for %s, whose messages they are not: %v", c.phone, named)
		}
		return
	}
}

// The method until repeats a call until a server answers it. Each try goes to a random server.
func (c *caller) until(method, path string, body any, header ...string) answer {
	for {
		if a, ok := c.try(method, path, body, header...); ok {
			return a
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// try calls one of the servers. If it returns false, nobody knows what the server did.
func (c *caller) try(method, path string, body any, header ...string) (answer, bool) {
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	a, err := callWith(impatient, method, c.bases[c.random.IntN(len(c.bases))]+path, c.tenant.key, body, header...)
	if err != nil || a.status == http.StatusServiceUnavailable || busy(a) {
		return a, false
	}
	return a, true
}

// impatient is an HTTP client with a short timeout. Callers that can reach several servers do not wait long for one of
// them.
var impatient = &http.Client{Timeout: 2 * time.Second, Transport: web.Transport}

// busy reports whether an earlier try of the same call is still in progress on a server, although the caller gave up
// that try.
func busy(a answer) bool {
	var problem struct {
		Code string `json:"code"`
	}
	return a.status == http.StatusConflict && json.Unmarshal(a.body, &problem) == nil && problem.Code == "busy"
}

func (c *caller) ids(a answer) []string {
	var got struct {
		ID []string `json:"id"`
	}
	c.read(a, &got)
	return got.ID
}

func (c *caller) cancelledIDs(a answer) (ids []string) {
	var got struct {
		Messages []struct {
			ID int64 `json:"id"`
		} `json:"messages"`
	}
	c.read(a, &got)
	for _, m := range got.Messages {
		ids = append(ids, strconv.FormatInt(m.ID, 10))
	}
	return ids
}

func (l *load) read(a answer, v any) {
	if a.status != http.StatusOK || json.Unmarshal(a.body, v) != nil {
		l.fault("a call was answered: %d %s", a.status, a.body)
	}
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}
