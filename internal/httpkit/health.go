package httpkit

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"puntuale/internal/catalogue"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
)

// HealthConfig configures [NewHealth].
type HealthConfig struct {
	Now     func() time.Time
	Check   func(context.Context) error // returns nil if the store answers and a write reaches the disk
	Working func() error                // returns nil if the dispatcher runs its rounds; Working is nil if this server has no dispatcher
	Roles   []string                    // the server's roles, shown in the answer of /readyz
	Logger  *slog.Logger
	Figure  func(part string, ready bool) // called with the result of each check of a part of the server; may be nil
}

// Health answers /healthz ("the process is alive: do not restart it") and /readyz ("the process does its work: send
// calls"). Many goroutines may call its methods at the same time.
type Health struct {
	cfg      HealthConfig
	stopping atomic.Bool

	mu      sync.Mutex // locked during a probe; requests that wait for the lock get the same result
	checked time.Time
	problem *puntuale.Error // nil: the last probe found no problem, or there was no probe yet
}

// NewHealth returns a Health that has not made a probe yet.
func NewHealth(cfg HealthConfig) *Health { return &Health{cfg: cfg} }

// Stopping makes all later answers of /readyz say that the server is stopping.
func (h *Health) Stopping() { h.stopping.Store(true) }

// Everybody may request /readyz, and each probe writes to the disk. So one probe's result is used for probeHolds.
const (
	probeHolds   = 500 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// Live answers GET /healthz.
func (h *Health) Live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, healthStatus{Status: "ok"})
}

// Ready answers GET /readyz.
func (h *Health) Ready(w http.ResponseWriter, r *http.Request) {
	if problem := h.Probe(r.Context()); problem != nil {
		NewProblem(r.Context(), slog.New(slog.DiscardHandler), problem).Write(w) // the cause was already logged when the problem began
		return
	}
	writeJSON(w, http.StatusOK, healthStatus{Status: "ready", Roles: h.cfg.Roles})
}

// Codes of the faults that this file reports.
const (
	faultServerNoDispatcher puntuale.ReasonCode = "server.no_dispatcher"
	faultStoreSilent        puntuale.ReasonCode = "store.silent"
)

// Probe returns nil if the server is ready, and otherwise the reason. The reason shows no internal details; the cause
// is in the log.
func (h *Health) Probe(ctx context.Context) *puntuale.Error {
	if h.stopping.Load() {
		return puntuale.ErrStopping
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.cfg.Now(); h.checked.IsZero() || now.Sub(h.checked) >= probeHolds || now.Before(h.checked) {
		problem, err := h.examine(context.WithoutCancel(ctx))
		h.logChange(problem, err)
		h.problem, h.checked = problem, h.cfg.Now()
	}
	return h.problem
}

func (h *Health) examine(ctx context.Context) (problem *puntuale.Error, cause error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := h.cfg.Check(ctx)
	h.note("store", err == nil)
	if err != nil {
		problem, cause = notReady(faultStoreSilent), err
		if e, ok := errors.AsType[*puntuale.Error](err); ok && (e.Code == puntuale.CodeStoreFull || e.Code == puntuale.CodeStoreDamaged) {
			problem = &puntuale.Error{Code: e.Code, Reason: e.Reason, RetryAfter: e.RetryAfter}
		}
	}
	if h.cfg.Working != nil {
		err := h.cfg.Working()
		h.note("dispatcher", err == nil)
		if err != nil && problem == nil {
			problem, cause = notReady(faultServerNoDispatcher), err
		}
	}
	return problem, cause
}

func (h *Health) note(part string, ready bool) {
	if h.cfg.Figure != nil {
		h.cfg.Figure(part, ready)
	}
}

func notReady(reason puntuale.ReasonCode) *puntuale.Error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(reason), RetryAfter: time.Second}
}

// logChange logs only what changed since the last probe. A line for each probe would fill the log with equal lines.
func (h *Health) logChange(problem *puntuale.Error, cause error) {
	switch {
	case problem == nil && h.problem != nil:
		h.cfg.Logger.Warn("ready again")
	case problem != nil && (h.problem == nil || !h.problem.Reason.Equal(problem.Reason)):
		h.cfg.Logger.Warn("not ready", "problem", catalogue.Message(problem.Reason), "error", cause)
	}
}

type healthStatus struct {
	Status string   `json:"status"`
	Roles  []string `json:"roles,omitempty"` // only in the answer of a ready server
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // this fails only if the caller closed the connection
}
