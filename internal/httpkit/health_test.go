package httpkit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// probes is a Health. The test decides what the store and the dispatcher report to the Health.
type probes struct {
	*Health
	clock  *clock.Fake
	checks atomic.Int64
	store  error
	work   error
}

func newProbes() *probes {
	p := &probes{clock: clock.NewFake(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))}
	p.Health = NewHealth(HealthConfig{
		Now:     p.clock.Now,
		Check:   func(context.Context) error { p.checks.Add(1); return p.store },
		Working: func() error { return p.work },
		Logger:  slog.New(slog.DiscardHandler),
	})
	return p
}

func (p *probes) ready(t *testing.T) (int, Problem) {
	t.Helper()
	w := httptest.NewRecorder()
	p.Health.Ready(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	var body Problem
	if w.Code != http.StatusOK {
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("Content-Type %q", got)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Status != w.Code {
			t.Errorf("body %s (%v)", w.Body.String(), err)
		}
	}
	return w.Code, body
}

// readiness is one change of the server's state, and the answer of /readyz after the change.
type readiness struct {
	change func()
	code   int
	detail string
}

// says returns the code that the answer must have.
func (r readiness) says() puntuale.Code {
	switch r.detail {
	case "the disk of the store is full":
		return puntuale.CodeStoreFull
	case "the store is damaged":
		return puntuale.CodeStoreDamaged
	}
	return puntuale.CodeUnavailable
}

func TestReadyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := newProbes()
	steps := []readiness{
		{func() {}, http.StatusOK, ""},
		{func() { p.store = errors.New("disk full") }, http.StatusServiceUnavailable, "the store does not answer"},
		{func() { p.store = puntuale.StoreFull(errors.New("13")) }, http.StatusServiceUnavailable, "the disk of the store is full"},
		{func() { p.store = puntuale.StoreDamaged(errors.New("11")) }, http.StatusServiceUnavailable, "the store is damaged"},
		{func() { p.store, p.work = nil, errors.New("no lease") }, http.StatusServiceUnavailable, "the dispatcher is not at work"},
		{func() { p.work = nil }, http.StatusOK, ""},
		{func() { p.Stopping() }, http.StatusServiceUnavailable, "the server is stopping"},
	}
	for _, step := range steps {
		step.change()
		p.clock.Advance(probeHolds)
		code, body := p.ready(t)
		if code != step.code || body.Detail != step.detail {
			t.Errorf("got %d %q, want %d %q", code, body.Detail, step.code, step.detail)
		}
		if says := body.Code; code != http.StatusOK && says != step.says() {
			t.Errorf("%s: code %s, want %s", body.Detail, says, step.says())
		}
	}
	w := httptest.NewRecorder()
	p.Live(w, nil)
	if w.Code != http.StatusOK {
		t.Errorf("a stopping server's process is alive, but /healthz answers %d", w.Code)
	}
}

// TestProbesShareAnAnswer: everybody may request /readyz, so many requests must not cause many writes.
func TestProbesShareAnAnswer(t *testing.T) {
	t.Parallel()
	p := newProbes()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { p.ready(t) })
	}
	all.Wait()
	if n := p.checks.Load(); n != 1 {
		t.Errorf("50 probes at once asked the store %d times", n)
	}
	p.clock.Advance(probeHolds)
	p.ready(t)
	if n := p.checks.Load(); n != 2 {
		t.Errorf("a later probe did not ask the store anew (%d)", n)
	}
}
