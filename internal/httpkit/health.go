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

// HealthConfig is what [NewHealth] needs.
type HealthConfig struct {
	Now     func() time.Time
	Check   func(context.Context) error // the store answers with a write on disk
	Working func() error                // the dispatcher does its rounds; nil: there is none
	Roles   []string                    // shown to those who ask
	Logger  *slog.Logger
	Figure  func(part string, ready bool) // told of each examination; nil: nobody is
}

// Health answers /healthz ("the process is alive: do not restart it") and /readyz ("the process does its work: send calls"). Safe for
// concurrent use.
type Health struct {
	cfg      HealthConfig
	stopping atomic.Bool

	mu      sync.Mutex // one probe at a time; those that waited share its answer
	checked time.Time
	problem *puntuale.Error // nil: all is well
}

// NewHealth returns a Health that has not examined anything yet.
func NewHealth(cfg HealthConfig) *Health { return &Health{cfg: cfg} }

// Stopping makes all later answers of /readyz say that the server is stopping.
func (h *Health) Stopping() { h.stopping.Store(true) }

// Anybody may ask, and each probe writes to the disk. So the answer of a probe is used again for a moment.
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
		NewProblem(r.Context(), slog.New(slog.DiscardHandler), problem).Write(w) // the cause was logged when it began
		return
	}
	writeJSON(w, http.StatusOK, healthStatus{Status: "ready", Roles: h.cfg.Roles})
}

// Faults of this file.
const (
	faultServerNoDispatcher puntuale.ReasonCode = "server.no_dispatcher"
	faultServerStopping     puntuale.ReasonCode = "server.stopping"
	faultStoreSilent        puntuale.ReasonCode = "store.silent"
)

// Probe returns a fault without internals, or nil. The log has the cause.
func (h *Health) Probe(ctx context.Context) *puntuale.Error {
	if h.stopping.Load() {
		return notReady(faultServerStopping)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.cfg.Now(); h.checked.IsZero() || now.Sub(h.checked) >= probeHolds || now.Before(h.checked) {
		problem, err := h.examine(context.WithoutCancel(ctx))
		h.tell(problem, err)
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

func notReady(why puntuale.ReasonCode) *puntuale.Error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(why), RetryAfter: time.Second}
}

// tell logs what changed since the last probe; a line for each probe would fill the log although nothing changes.
func (h *Health) tell(problem *puntuale.Error, cause error) {
	switch {
	case problem == nil && h.problem != nil:
		h.cfg.Logger.Warn("ready again")
	case problem != nil && (h.problem == nil || !h.problem.Reason.Equal(problem.Reason)):
		h.cfg.Logger.Warn("not ready", "problem", catalogue.Message(problem.Reason), "error", cause)
	}
}

type healthStatus struct {
	Status string   `json:"status"`
	Roles  []string `json:"roles,omitempty"` // of a server that is ready
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a reader that went away needs no answer
}
