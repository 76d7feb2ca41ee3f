package devicecommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

// The tests run in a bubble of testing/synctest, whose time advances at once when all goroutines wait. The server is a
// fake that follows docs/device.md strictly. Calls reach it without a network.

const token = "device-token"

// world is a server with messages, and a record of what the command did.
type world struct {
	t     *testing.T
	clock clock.Clock

	mu      sync.Mutex // locked while a call is answered; no goroutine sleeps while it holds the lock
	folder  string
	dedupes bool
	hasty   bool // true: a call that takes messages does not wait
	all     []*message

	attempts map[string]*attempt
	count    int
	calls    []string
	unlinked bool
	ran      map[int]int // how often the command sent each message

	fault func(call string, n int) fault // called before each call; n counts from 1
	point func()                         // called at every point where a crash may happen
	life  *life
}

// message is due, held, uncertain, or has an outcome.
type message struct {
	id      int
	outcome client.Outcome
	detail  string
	attempt *attempt // the last attempt
}

type attempt struct {
	id, take string
	message  *message
	until    time.Time
	outcome  client.Outcome
	recorded int
}

// fault is what goes wrong with a call.
type fault struct {
	status int    // the status of the answer; 0: the call succeeds
	after  string // the header Retry-After of this answer
	lost   bool   // true: the server executes the call, but its answer is lost
	away   bool   // true: the call does not arrive
	stops  bool   // true: the device is told to stop after the call
}

// life is one process, from its start to its end.
type life struct {
	stop context.CancelFunc
	dead bool // true: the process was killed, and its actions have no effect any more
}

func newWorld(t *testing.T, messages int) *world {
	w := &world{
		t: t, clock: clock.System(), folder: t.TempDir(), attempts: map[string]*attempt{}, ran: map[int]int{},
		fault: func(string, int) fault { return fault{} }, point: func() {},
	}
	for id := range messages {
		w.all = append(w.all, &message{id: id + 1})
	}
	return w
}

// run runs a process on the current journal.
func (w *world) run(do func(json.RawMessage) (client.Outcome, string, error)) error {
	ctx, stop := context.WithTimeout(w.t.Context(), 24*time.Hour) // time in the bubble; this also ends a device that hangs
	defer stop()
	own := &life{stop: stop}
	w.locked(func() { w.life = own })
	j, err := OpenJournal(w.journal(), w.clock)
	if err != nil {
		return err
	}
	defer j.Close()
	c := client.NewDevice("http://server.example", token, w.clock)
	c.Transport = transport(func(r *http.Request) (*http.Response, error) { return w.serve(own, r) })
	return Run(ctx, Config{
		Client: c, Journal: j, Most: 3, Lease: time.Minute, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
		Do: func(m json.RawMessage) (client.Outcome, string, error) {
			if w.at(own) {
				return client.Unknown, "", errors.New("killed")
			}
			outcome, detail, err := do(m)
			w.at(own)
			return outcome, detail, err
		},
	})
}

// send is the usual command.
func (w *world) send(m json.RawMessage) (client.Outcome, string, error) {
	w.locked(func() { w.ran[w.id(m)]++ })
	return client.Sent, "done", nil
}

func (w *world) id(m json.RawMessage) int {
	var v struct {
		ID    int    `json:"message_id,string"`
		Phone string `json:"phone"`
	}
	if err := json.Unmarshal(m, &v); err != nil || v.Phone == "" {
		w.t.Errorf("the command got %s: %v", m, err)
	}
	return v.ID
}

func (w *world) journal() string { return filepath.Join(w.folder, "journal") }

// locked runs a function under the world's lock, because the renewal of holds reads the world at the same time.
func (w *world) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// at marks a point at which a process may be killed. It reports whether the process is dead.
func (w *world) at(own *life) (dead bool) {
	w.locked(func() { dead = w.passed(own) })
	return dead
}

func (w *world) passed(own *life) (dead bool) {
	if !own.dead {
		w.point()
	}
	return own.dead
}

// kill ends the current process immediately. Its later writes and calls have no effect. The next process finds the
// journal in its state at this time.
func (w *world) kill() {
	text, err := os.ReadFile(w.journal())
	if err != nil {
		w.t.Error(err)
	}
	w.folder = w.t.TempDir()
	if err := os.WriteFile(w.journal(), text, 0o600); err != nil {
		w.t.Error(err)
	}
	w.life.dead = true
	w.life.stop()
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errAway = errors.New("connection refused")

func (w *world) serve(own *life, r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passed(own) {
		return nil, errAway
	}
	call := r.Method + " " + r.URL.Path
	w.calls = append(w.calls, call)
	f := w.fault(call, len(w.calls))
	if f.away {
		return nil, errAway
	}
	answer := httptest.NewRecorder()
	switch {
	case f.status != 0:
		answer.Header().Set("Retry-After", f.after)
		answer.WriteHeader(f.status)
	case r.Header.Get("Authorization") != "Bearer "+token || w.unlinked:
		answer.WriteHeader(http.StatusUnauthorized)
	default:
		w.answer(answer, r, call)
	}
	if f.stops {
		own.stop()
	}
	if w.passed(own) || f.lost {
		return nil, io.ErrUnexpectedEOF
	}
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return answer.Result(), nil
}

// order has every member that the body of a call may have.
type order struct {
	Take     string          `json:"take"`
	Max      int             `json:"max"`
	Wait     int             `json:"wait"`
	Lease    int             `json:"lease"`
	Attempts []string        `json:"attempts"`
	Reports  []client.Report `json:"reports"`
}

func (w *world) answer(to http.ResponseWriter, r *http.Request, call string) {
	var o order
	if r.Method == http.MethodPost {
		in := json.NewDecoder(r.Body)
		in.DisallowUnknownFields()
		if err := in.Decode(&o); err != nil {
			w.t.Errorf("%s: %v", call, err)
		}
	}
	var body any
	switch call {
	case "GET /device":
		body = map[string]any{"id": "7", "name": "modem", "dedupes": w.dedupes, "session": map[string]any{"id": "3", "name": "s"}}
	case "GET /device/due":
		body = map[string]any{"messages": []any{}, "held": w.show(func(a *attempt) bool { return true })}
	case "POST /device/take":
		w.take(r.Context(), o)
		body = map[string]any{"messages": w.show(func(a *attempt) bool { return a.take == o.Take })}
	case "POST /device/renew":
		body = w.renew(o)
	case "POST /device/report":
		results := []any{}
		for _, report := range o.Reports {
			results = append(results, map[string]any{"attempt": report.Attempt, "result": w.report(report)})
		}
		body = map[string]any{"results": results}
	default:
		w.t.Errorf("an unknown call: %s", call)
	}
	if err := json.NewEncoder(to).Encode(body); err != nil {
		w.t.Error(err)
	}
}

// held reports whether an attempt still holds its message.
func (w *world) held(a *attempt) bool {
	return a.outcome == "" && a.message.attempt == a && w.clock.Now().Before(a.until)
}

// show lists the held attempts.
func (w *world) show(matches func(*attempt) bool) []any {
	list := []any{}
	for _, m := range w.all {
		if a := m.attempt; a != nil && w.held(a) && matches(a) {
			list = append(list, map[string]any{
				"attempt": a.id, "lease_until": a.until, "message_id": strconv.Itoa(m.id), "phone": "+39333123456" + strconv.Itoa(m.id), "text": "ciao",
			})
		}
	}
	return list
}

func (w *world) free(m *message) bool {
	return m.outcome == "" && (m.attempt == nil || m.attempt.outcome == client.Returned || w.dedupes && !w.held(m.attempt))
}

func (w *world) take(ctx context.Context, o order) {
	if o.Take == "" || o.Max < 1 || o.Max > 100 || o.Lease < 10 || o.Wait > 30 {
		w.t.Errorf("a bad take: %+v", o)
	}
	if len(w.show(func(a *attempt) bool { return a.take == o.Take })) > 0 {
		return // this is a repeat
	}
	if !w.hasty && !slices.ContainsFunc(w.all, w.free) {
		w.mu.Unlock()
		_ = w.clock.Sleep(ctx, time.Duration(o.Wait)*time.Second)
		w.mu.Lock()
	}
	for _, m := range w.all {
		if o.Max > 0 && w.free(m) && ctx.Err() == nil {
			o.Max--
			w.count++
			m.attempt = &attempt{id: fmt.Sprintf("a%d", w.count), take: o.Take, message: m, until: w.clock.Now().Add(time.Duration(o.Lease) * time.Second)}
			w.attempts[m.attempt.id] = m.attempt
		}
	}
}

func (w *world) renew(o order) any {
	renewed, lost := []any{}, []string{}
	for _, id := range o.Attempts {
		if a := w.attempts[id]; w.held(a) {
			a.until = w.clock.Now().Add(time.Duration(o.Lease) * time.Second)
			renewed = append(renewed, map[string]any{"attempt": id, "lease_until": a.until})
		} else {
			lost = append(lost, id)
		}
	}
	return map[string]any{"messages": renewed, "lost": lost}
}

func (w *world) report(r client.Report) string {
	a := w.attempts[r.Attempt]
	switch {
	case a.outcome == r.Outcome:
		return "known"
	case a.outcome != "", a.message.attempt != a, r.Outcome == client.Returned && !w.held(a), a.message.outcome != "":
		return "late"
	}
	a.outcome = r.Outcome
	a.recorded++
	if r.Outcome != client.Returned {
		a.message.outcome, a.message.detail = r.Outcome, r.Detail
	}
	return "recorded"
}

// decided reports whether every message has an outcome.
func (w *world) decided() bool {
	return !slices.ContainsFunc(w.all, func(m *message) bool { return m.outcome == "" })
}
