package main

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

	"puntuale/internal/clock"
	"puntuale/internal/httpkit"
)

// probes answers /readyz with what the test says of the store and the dispatcher.
type probes struct {
	*health
	clock  *clock.Fake
	checks atomic.Int64
	store  error
	work   error
}

func newProbes() *probes {
	p := &probes{clock: clock.NewFake(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))}
	p.health = &health{
		clock:   p.clock,
		check:   func(context.Context) error { p.checks.Add(1); return p.store },
		healthy: func() error { return p.work },
		logger:  slog.New(slog.DiscardHandler),
	}
	return p
}

func (p *probes) ready(t *testing.T) (int, httpkit.Problem) {
	t.Helper()
	w := httptest.NewRecorder()
	p.health.ready(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	var body httpkit.Problem
	if w.Code != http.StatusOK {
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("Content-Type %q", got)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Status != w.Code || body.Code != "unavailable" {
			t.Errorf("body %s (%v)", w.Body.String(), err)
		}
	}
	return w.Code, body
}

func TestReadyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := newProbes()
	steps := []struct {
		change func()
		code   int
		detail string
	}{
		{func() {}, http.StatusOK, ""},
		{func() { p.store = errors.New("disk full") }, http.StatusServiceUnavailable, "the store does not answer"},
		{func() { p.store, p.work = nil, errors.New("no lease") }, http.StatusServiceUnavailable, "the dispatcher is not at work"},
		{func() { p.work = nil }, http.StatusOK, ""},
		{func() { p.stopping.Store(true) }, http.StatusServiceUnavailable, "the server is stopping"},
	}
	for _, step := range steps {
		step.change()
		p.clock.Advance(probeHolds)
		if code, body := p.ready(t); code != step.code || body.Detail != step.detail {
			t.Errorf("got %d %q, want %d %q", code, body.Detail, step.code, step.detail)
		}
	}
	w := httptest.NewRecorder()
	p.live(w, nil)
	if w.Code != http.StatusOK {
		t.Errorf("a stopping server's process is alive, but /healthz answers %d", w.Code)
	}
}

// TestProbesShareAnAnswer: anybody may ask, so a flood of probes must not be a flood of writes.
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
