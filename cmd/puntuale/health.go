package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// health answers /healthz, "the process is alive: do not restart it", and /readyz, "it does its work: send it calls".
type health struct {
	clock    clock.Clock
	check    func(context.Context) error // the store answers with a write on disk
	healthy  func() error                // the dispatcher does its rounds
	logger   *slog.Logger
	stopping atomic.Bool

	mu      sync.Mutex // one probe at a time; those that waited share its answer
	checked time.Time
	problem string
}

// Anybody may ask, and a probe writes: its answer holds for a moment.
const (
	probeHolds   = 500 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// live answers GET /healthz.
func (h *health) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, status{"ok"})
}

// ready answers GET /readyz.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	if problem := h.probe(r.Context()); problem != "" {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/problem+json")
		writeJSON(w, http.StatusServiceUnavailable, problemBody{
			Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
			Code: puntuale.CodeUnavailable, Detail: problem})
		return
	}
	writeJSON(w, http.StatusOK, status{"ready"})
}

// probe returns what is wrong, "" when nothing is: a sentence without internals, whose cause is in the log.
func (h *health) probe(ctx context.Context) string {
	if h.stopping.Load() {
		return "the server is stopping"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.clock.Now(); h.checked.IsZero() || now.Sub(h.checked) >= probeHolds || now.Before(h.checked) {
		h.problem = h.examine(context.WithoutCancel(ctx))
		h.checked = h.clock.Now()
	}
	return h.problem
}

func (h *health) examine(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := h.check(ctx); err != nil {
		h.logger.Warn("not ready: the store does not answer", "error", err)
		return "the store does not answer"
	}
	if err := h.healthy(); err != nil {
		h.logger.Warn("not ready: the dispatcher is not at work", "error", err)
		return "the dispatcher is not at work"
	}
	return ""
}

type status struct {
	Status string `json:"status"`
}

// problemBody is the form of every refusal of the API.
type problemBody struct {
	Type   string        `json:"type"`
	Title  string        `json:"title"`
	Status int           `json:"status"`
	Detail string        `json:"detail"`
	Code   puntuale.Code `json:"code"`
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a reader that went away needs no answer
}
