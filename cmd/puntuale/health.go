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
	"puntuale/internal/httpkit"
)

// health answers /healthz, "the process is alive: do not restart it", and /readyz, "it does its work: send it calls".
type health struct {
	clock    clock.Clock
	check    func(context.Context) error // the store answers with a write on disk
	healthy  func() error                // the dispatcher does its rounds; nil: there is none
	roles    []string
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
	writeJSON(w, http.StatusOK, status{Status: "ok"})
}

// ready answers GET /readyz.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	if problem := h.probe(r.Context()); problem != "" {
		err := &puntuale.Error{Code: puntuale.CodeUnavailable, Message: problem, RetryAfter: time.Second}
		httpkit.NewProblem(r.Context(), slog.New(slog.DiscardHandler), err).Write(w) // the cause was logged when it began
		return
	}
	writeJSON(w, http.StatusOK, status{Status: "ready", Roles: h.roles})
}

// probe returns what is wrong, "" when nothing is: a sentence without internals, whose cause is in the log.
func (h *health) probe(ctx context.Context) string {
	if h.stopping.Load() {
		return "the server is stopping"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.clock.Now(); h.checked.IsZero() || now.Sub(h.checked) >= probeHolds || now.Before(h.checked) {
		problem, err := h.examine(context.WithoutCancel(ctx))
		h.tell(problem, err)
		h.problem, h.checked = problem, h.clock.Now()
	}
	return h.problem
}

func (h *health) examine(ctx context.Context) (problem string, cause error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := h.check(ctx); err != nil {
		return "the store does not answer", err
	}
	if h.healthy != nil {
		if err := h.healthy(); err != nil {
			return "the dispatcher is not at work", err
		}
	}
	return "", nil
}

// tell logs what changed since the last probe; a line for each would fill the log while nothing changes.
func (h *health) tell(problem string, cause error) {
	switch problem {
	case h.problem: // nothing changed
	case "":
		h.logger.Warn("ready again")
	default:
		h.logger.Warn("not ready", "problem", problem, "error", cause)
	}
}

type status struct {
	Status string   `json:"status"`
	Roles  []string `json:"roles,omitempty"` // of a server that is ready
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a reader that went away needs no answer
}
