package main

import (
	"log/slog"
	"net/http"
	"strings"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/automation"
	"puntuale/internal/httpkit"
	"puntuale/internal/operator"
	"puntuale/internal/web/page"

	"puntuale/internal/logging"
	"puntuale/internal/metrics"
)

// routes adds routes to the API: the operator's routes, the metrics, the pages, the webhooks, the hooks and the uploaded files. If
// a handler is nil, its routes are not added. m is nil if another address answers /metrics. All other paths go to the API
// unchanged. routes uses no mux, because a mux redirects paths that are not clean. The redirect would repeat the key in
// the address.
func routes(api, pages, webhooks, hooks, files http.Handler, h *httpkit.Health, m *metrics.Meter, c clock.Clock, logger *slog.Logger) http.Handler {
	own := ownRoutes(h, m)
	for path, handler := range own {
		own[path] = quiet(handler, c, logger)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if len(path) > 1 {
			path = strings.TrimSuffix(path, "/")
		}
		if handler, ok := own[path]; ok {
			handler.ServeHTTP(w, r)
			return
		}
		if webhooks != nil && strings.HasPrefix(path, "/webhooks/") {
			webhooks.ServeHTTP(w, r)
			return
		}
		if hooks != nil && strings.HasPrefix(path, automation.HookPath) {
			hooks.ServeHTTP(w, r)
			return
		}
		if files != nil && strings.HasPrefix(path, control.FilePath) {
			files.ServeHTTP(w, r)
			return
		}
		if pages != nil && page.Takes(r) {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// quiet serves requests that come every few seconds. The access log shows them only with the level debug.
func quiet(h http.Handler, c clock.Clock, logger *slog.Logger) http.Handler {
	return httpkit.Wrap(readOnly(h, logger), httpkit.Config{Logger: logging.Lowered(logger), Now: c.Now})
}

// onlyFigures answers /metrics and the operator's page, and nothing else.
func onlyFigures(m *metrics.Meter, page *operator.Page, c clock.Clock, logger *slog.Logger) http.Handler {
	figures, missing := m.Handler(), http.NotFoundHandler()
	return quiet(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimSuffix(r.URL.Path, "/"); {
		case path == "/metrics":
			figures.ServeHTTP(w, r)
		case operator.Takes(path):
			page.ServeHTTP(w, r)
		default:
			missing.ServeHTTP(w, r)
		}
	}), c, logger)
}

// ownRoutes returns the operator's routes. If m is nil, another address answers /metrics.
func ownRoutes(h *httpkit.Health, m *metrics.Meter) map[string]http.Handler {
	own := map[string]http.Handler{
		"/healthz": http.HandlerFunc(h.Live),
		"/readyz":  http.HandlerFunc(h.Ready),
	}
	if m != nil {
		own["/metrics"] = m.Handler()
	}
	return own
}

// readOnly refuses every method except GET and HEAD.
func readOnly(h http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		err := &puntuale.Error{Code: httpkit.CodeMethod, Reason: puntuale.Because(puntuale.FaultCallMethod)}
		httpkit.NewProblem(r.Context(), logger, err).Write(w)
	})
}
