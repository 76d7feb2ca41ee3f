// Package hook handles the requests of programs that post to the secret address of an automation's hook. It
// authenticates a request before it reads the request's body.
package hook

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control/automation"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
)

// Config contains the parts and settings for [New]. All members except Proxies and Observe must be set.
type Config struct {
	Automations *automation.Automations
	Logger      *slog.Logger
	Now         func() time.Time // for the rate limit and the access log
	Admit       admission.Limits // shared with the API, the dashboards and the webhooks
	Proxies     httpkit.Proxies  // nil: httpkit.DefaultProxies
	Observe     func(route string, status int, took time.Duration)
}

// Route is the name of all hook requests in logs and figures, because the path itself is a secret.
const Route = "POST " + automation.HookPath + "{secret}"

// bodyWithin bounds the time in which a body must arrive.
const bodyWithin = 10 * time.Second

type handler struct {
	cfg  Config
	pace *admission.RateLimiter[puntuale.AutomationID]
}

// New returns the handler of all paths below [automation.HookPath]. A wrong secret gets 404. A program that calls more
// often than [puntuale.MaxHookRate] times a second gets 429; each node counts separately. A call that a rule cannot use
// gets 200, and the answer contains the reason. Such a call is not refused, because some programs stop using an address
// after a few refusals.
func New(cfg Config) http.Handler {
	h := &handler{cfg: cfg, pace: admission.NewRateLimiter[puntuale.AutomationID](puntuale.MaxHookRate, puntuale.MaxHookRate, cfg.Now)}
	return httpkit.Wrap(h, httpkit.Config{Logger: cfg.Logger, Now: cfg.Now, Proxies: cfg.Proxies, Observe: cfg.Observe})
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpkit.Matched(r.Context(), Route)
	result, err := h.take(w, r)
	if err != nil {
		httpkit.NewProblem(r.Context(), h.cfg.Logger, err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answerOf(result)) // this fails only if the caller has disconnected
}

// answer is the body of an answer.
type answer struct {
	Accepted bool    `json:"accepted"`
	Repeated bool    `json:"repeated,omitempty"`
	Errors   []fault `json:"errors,omitempty"`
}

type fault struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

func answerOf(r automation.HookResult) answer {
	out := answer{Accepted: r.Accepted, Repeated: r.Repeated}
	for _, f := range r.Faults {
		out.Errors = append(out.Errors, fault{f.Location, catalogue.Message(f.Reason())})
	}
	return out
}

func (h *handler) take(w http.ResponseWriter, r *http.Request) (automation.HookResult, error) {
	var none automation.HookResult
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return none, &puntuale.Error{Code: httpkit.CodeMethod, Reason: puntuale.Because(puntuale.FaultCallMethod)}
	}
	from := httpkit.UnknownCaller(r)
	pass, ctx, err := h.cfg.Admit.Gate.Enter(r.Context(), from, admission.PriorityWrite)
	if err != nil {
		httpkit.Quieten(r.Context())
		return none, err
	}
	defer pass.Leave()
	found, err := h.find(ctx, r, from)
	if err != nil {
		return none, err
	}
	httpkit.Annotate(r.Context(), slog.Int64("client_id", int64(found.Client)), slog.Int64("automation_id", int64(found.Automation)))
	if err := h.pace.Take(found.Automation); err != nil {
		return none, err
	}
	budget := h.cfg.Admit.Budget.Open(from)
	defer budget.Close()
	if err := admission.CheckLength(r, puntuale.MaxHookBody); err != nil {
		return none, err
	}
	pass.LeaveSeat() // other requests may use the seat while the body arrives
	release := admission.ReadWithin(w, r, bodyWithin)
	defer release()
	body, err := admission.ReadBody(w, r, puntuale.MaxHookBody, budget)
	if err != nil {
		return none, err
	}
	if ctx, err = pass.Return(r.Context()); err != nil {
		return none, err
	}
	return h.cfg.Automations.Call(ctx, found, automation.HookRequest{
		Key: r.Header.Get("Idempotency-Key"), ContentType: r.Header.Get("Content-Type"), Body: body,
	})
}

// find finds the hook of a request. A wrong secret counts against the address of the caller. Codes: not_found,
// rate_limited.
func (h *handler) find(ctx context.Context, r *http.Request, from admission.CallerKey) (puntuale.Hook, error) {
	secret := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, automation.HookPath), "/")
	found, err := h.cfg.Automations.HookOf(ctx, secret)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		httpkit.Quieten(r.Context())
		if early := h.cfg.Admit.UnknownCallers.Take(from); early != nil {
			return found, early
		}
		return found, &puntuale.Error{Code: puntuale.CodeNotFound, Reason: puntuale.Because(puntuale.FaultCallNoPath)}
	}
	return found, err
}
