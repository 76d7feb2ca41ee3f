package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
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
	figure   func(part string, ready bool) // is told of each examination; nil: nobody is
	stopping atomic.Bool

	mu      sync.Mutex // one probe at a time; those that waited share its answer
	checked time.Time
	problem *puntuale.Error // nil: all is well
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
	if problem := h.probe(r.Context()); problem != nil {
		httpkit.NewProblem(r.Context(), slog.New(slog.DiscardHandler), problem).Write(w) // the cause was logged when it began
		return
	}
	writeJSON(w, http.StatusOK, status{Status: "ready", Roles: h.roles})
}

// Faults of this file.
const (
	faultServerNoDispatcher puntuale.ReasonCode = "server.no_dispatcher"
	faultServerStopping     puntuale.ReasonCode = "server.stopping"
	faultStoreSilent        puntuale.ReasonCode = "store.silent"
)

// probe returns a fault without internals, or nil. The log has the cause.
func (h *health) probe(ctx context.Context) *puntuale.Error {
	if h.stopping.Load() {
		return notReady(faultServerStopping)
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

func (h *health) examine(ctx context.Context) (problem *puntuale.Error, cause error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := h.check(ctx)
	h.note("store", err == nil)
	if err != nil {
		problem, cause = notReady(faultStoreSilent), err
		if e, ok := errors.AsType[*puntuale.Error](err); ok && (e.Code == puntuale.CodeStoreFull || e.Code == puntuale.CodeStoreDamaged) {
			problem = &puntuale.Error{Code: e.Code, Reason: e.Reason, RetryAfter: e.RetryAfter}
		}
	}
	if h.healthy != nil {
		err := h.healthy()
		h.note("dispatcher", err == nil)
		if err != nil && problem == nil {
			problem, cause = notReady(faultServerNoDispatcher), err
		}
	}
	return problem, cause
}

func (h *health) note(part string, ready bool) {
	if h.figure != nil {
		h.figure(part, ready)
	}
}

func notReady(why puntuale.ReasonCode) *puntuale.Error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(why), RetryAfter: time.Second}
}

// tell logs what changed since the last probe; a line for each would fill the log while nothing changes.
func (h *health) tell(problem *puntuale.Error, cause error) {
	switch {
	case problem == nil && h.problem != nil:
		h.logger.Warn("ready again")
	case problem != nil && (h.problem == nil || !h.problem.Reason.Equal(problem.Reason)):
		h.logger.Warn("not ready", "problem", catalogue.Message(problem.Reason), "error", cause)
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
