package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

const theKey = "the key"

// peer is a server that expects certain calls in order, and returns the answer of each. It records the calls in a
// ledger, and refuses any other call.
type peer struct {
	t       *testing.T
	mu      sync.Mutex
	answers []answer
	ledger  []string
	late    chan<- time.Time // ends the client's wait for an answer
}

// answer is the answer to one expected call.
type answer struct {
	call   string // the expected call: method, path and body
	status int    // 0: 200; cut: the connection ends without an answer; slow: the answer comes too late
	after  string // the value of the header Retry-After
	body   string
}

const (
	cut  = -1
	slow = -2
)

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	call := strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(body))
	p.ledger = append(p.ledger, call)
	switch {
	case err != nil:
		p.t.Errorf("%s: %v", call, err)
	case r.Header.Get("Authorization") != "Bearer "+theKey:
		p.t.Errorf("%s comes with the key %q", call, r.Header.Get("Authorization"))
	case len(p.answers) == 0 || p.answers[0].call != call:
		p.t.Errorf("%s was not expected; left: %+v", call, p.answers)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	a := p.answers[0]
	p.answers = p.answers[1:]
	switch a.status {
	case slow:
		p.late <- time.Time{}
		<-r.Context().Done()
		return
	case cut:
		panic(http.ErrAbortHandler)
	}
	if a.after != "" {
		w.Header().Set("Retry-After", a.after)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	fmt.Fprint(w, a.body)
}

// meet returns a client, its clock, and a peer with these answers. The clock advances by the time that the client
// sleeps.
func meet(t *testing.T, answers ...answer) (*client.Client, *jump, *peer) {
	t.Helper()
	late := make(chan time.Time)
	p := &peer{t: t, answers: answers, late: late}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if len(p.answers) > 0 {
			t.Errorf("these calls did not come: %+v", p.answers)
		}
	})
	j := &jump{Clock: clock.System(), late: late}
	return client.New(server.URL, theKey, j), j, p
}

// jump is a clock whose sleeps end immediately. It adds up the durations of the sleeps. The peer decides when the time
// limit of a call ends.
type jump struct {
	clock.Clock
	slept time.Duration
	late  <-chan time.Time
}

func (j *jump) After(time.Duration) (<-chan time.Time, func()) { return j.late, func() {} }

func (j *jump) Now() time.Time { return j.Clock.Now().Add(j.slept) }

func (j *jump) Sleep(ctx context.Context, d time.Duration) error {
	j.slept += d
	return ctx.Err()
}

const (
	startCall = `POST /api/campaigns/7/start {"digest":"abc"}`
	running   = `{"id":"7","state":"running"}`
)

// If the answer to a start is lost, the client repeats the start with the same digest. The server starts the campaign
// only once.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	c, _, p := meet(t, answer{call: startCall, status: cut}, answer{call: startCall, status: http.StatusBadGateway}, answer{call: startCall, body: running})
	var lost []error
	c.Lost = func(err error, n int, _ time.Duration) {
		if n < 2 {
			lost = append(lost, err)
		}
	}
	started, err := c.StartCampaign(t.Context(), "7", "abc")
	if err != nil || started.State != "running" || len(p.ledger) != 3 {
		t.Errorf("started: %+v, %v; calls %q", started, err, p.ledger)
	}
	if len(lost) != 2 || lost[0] == nil || lost[1] != nil {
		t.Errorf("a person was told %v", lost)
	}
}

// The client waits as long as Retry-After says, but at most a minute, and then for its own short pause.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	get := "GET /api/campaigns/7"
	c, j, _ := meet(t, answer{call: get, status: http.StatusTooManyRequests, after: "9"},
		answer{call: get, status: http.StatusServiceUnavailable, after: "86400"}, answer{call: get, body: running})
	if _, err := c.Campaign(t.Context(), "7"); err != nil {
		t.Fatal(err)
	}
	if own := j.slept - 69*time.Second; own <= 0 || own > 1500*time.Millisecond {
		t.Errorf("waited %v, want 9 s and a minute, and the pauses after two failures", j.slept)
	}
}

// The client does not repeat a call whose failure is permanent. The error contains every fault.
func TestRefusals(t *testing.T) {
	t.Parallel()
	get := "GET /api/campaigns/7"
	for name, c := range map[string]struct {
		answer answer
		want   []string
	}{
		"faults": {answer{status: 422, body: `{"code":"invalid","detail":"the request is not valid","errors":[{"location":"body.name","message":"is required"},{"location":"body.text","message":"is too long"}]}`},
			[]string{"the request is not valid", "name is required", "text is too long"}},
		"full":     {answer{status: 503, body: `{"code":"store_full","detail":"the disk is full"}`}, []string{"the disk is full"}},
		"cap":      {answer{status: 429, body: `{"code":"cap_reached","detail":"no calls are left today"}`}, []string{"no calls are left today"}},
		"html":     {answer{status: 404, body: `<html>nginx</html>`}, []string{"404"}},
		"redirect": {answer{status: 302}, []string{"302"}},
		"big":      {answer{status: 404, body: strings.Repeat("x", 33<<20)}, []string{"404"}},
		"garbage":  {answer{body: `<html>a portal</html>`}, []string{"in no form that this program knows"}},
		"half":     {answer{body: `{"id":"7",`}, []string{"in no form that this program knows"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.answer.call = get
			asker, j, _ := meet(t, c.answer)
			_, err := asker.Campaign(t.Context(), "7")
			if _, refused := errors.AsType[*client.Refusal](err); !refused || j.slept != 0 {
				t.Fatalf("%v after %v", err, j.slept)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing from: %v", want, err)
				}
			}
		})
	}
}

// An answer that is larger than any answer of the server is cut off, and is an error.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	c, _, _ := meet(t, answer{call: "GET /api/campaigns/7", body: `{"name":"` + strings.Repeat("a", 33<<20) + `"}`})
	if _, err := c.Campaign(t.Context(), "7"); err == nil {
		t.Error("33 MiB were taken as an answer")
	}
}

// A start with an outdated digest returns the new check. If an edit removed the check, the campaign must be checked
// again.
func TestStartAfterChange(t *testing.T) {
	t.Parallel()
	changed := `{"code":"conflict","detail":"changed","errors":[{"location":"body.digest","message":"is old","value":{"digest":"def","messages":3}}]}`
	draft := `{"code":"conflict","detail":"the campaign is draft"}`
	for name, c := range map[string]struct {
		answers []answer
		digest  string
		changed bool
	}{
		"checked":   {[]answer{{call: startCall, status: 409, body: changed}}, "def", true},
		"edited":    {[]answer{{call: startCall, status: 409, body: draft}, {call: "GET /api/campaigns/7", body: `{"id":"7","state":"draft"}`}}, "", true},
		"cancelled": {[]answer{{call: startCall, status: 409, body: draft}, {call: "GET /api/campaigns/7", body: `{"id":"7","state":"cancelled"}`}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asker, _, _ := meet(t, c.answers...)
			_, err := asker.StartCampaign(t.Context(), "7", "abc")
			found, ok := errors.AsType[*client.ChangedError](err)
			if err == nil || ok != c.changed || ok && found.Check.Digest != c.digest {
				t.Errorf("%v, %+v", err, found)
			}
		})
	}
}

// If a check takes longer than one call, the client calls again until the check has a digest, and reports the progress.
func TestLongCheck(t *testing.T) {
	t.Parallel()
	check := "POST /api/campaigns/7/check"
	c, _, _ := meet(t, answer{call: check, body: `{"done":100,"recipients":300}`}, answer{call: check, status: cut},
		answer{call: check, body: `{"done":200,"recipients":300}`}, answer{call: check, body: `{"digest":"abc","done":300}`})
	var done []int
	found, err := c.CheckCampaign(t.Context(), "7", func(k client.Check) { done = append(done, k.Done) })
	if err != nil || found.Digest != "abc" || !slices.Equal(done, []int{100, 200}) {
		t.Errorf("%+v, %v; told %v", found, err, done)
	}
}

// Without any answer, the client gives up after ten seconds, because there is no server. After a first answer, it
// retries for an hour.
func TestNoServer(t *testing.T) {
	t.Parallel()
	c, j, _ := meet(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	none := client.New(dead.URL, theKey, j)
	if _, err := none.Campaign(t.Context(), "7"); err == nil || j.slept > 30*time.Second {
		t.Errorf("%v after %v", err, j.slept)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Campaign(ctx, "7"); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

// Each time the answer breaks off, the client writes the refused rows again from the beginning.
func TestRefusedRowsBreakOff(t *testing.T) {
	t.Parallel()
	get := "GET /api/campaigns/7/refused"
	c, _, _ := meet(t, answer{call: get, status: 503}, answer{call: get, body: "line,phone\n7,abc\n"})
	var file bytes.Buffer
	err := c.RefusedRows(t.Context(), "7", func() (io.Writer, error) { file.Reset(); return &file, nil })
	if err != nil || file.String() != "line,phone\n7,abc\n" {
		t.Errorf("%q, %v", file.String(), err)
	}
}

// A draft is created with an idempotency key, and its members have the names of docs/api.md.
func TestCreate(t *testing.T) {
	t.Parallel()
	order := client.CampaignOrder{Name: "Saldi", Content: &client.Content{Text: "ciao"}, Pace: &client.Pace{PerMinute: 30}}
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := meet(t, answer{call: "POST /api/campaigns " + string(text), body: `{"id":"7","state":"draft"}`})
	made, err := c.CreateCampaign(t.Context(), order, "a key of the order")
	if err != nil || made.ID != "7" || !strings.Contains(string(text), `"per_minute":30`) {
		t.Errorf("%+v, %v, %s", made, err, text)
	}
}

// The client does not follow a redirect, because its target would get the key.
func TestKeyStaysHere(t *testing.T) {
	t.Parallel()
	var asked []string
	elsewhere := transport(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://elsewhere.example/"}}, Body: http.NoBody}, nil
	})
	person := client.New("http://server.example/", theKey, clock.System())
	device := client.NewDevice("http://server.example/", theKey, clock.System())
	person.Transport, device.Transport = elsewhere, elsewhere
	_, personErr := person.Campaign(t.Context(), "7")
	_, deviceErr := device.Device(t.Context())
	if want := []string{"http://server.example/api/campaigns/7", "http://server.example/device"}; personErr == nil || deviceErr == nil || !slices.Equal(asked, want) {
		t.Errorf("%v, %v, asked %q", personErr, deviceErr, asked)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
