package main

import (
	"log/slog"
	"net/http"
	"strings"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/httpkit"
	"puntuale/internal/web"
)

// routes puts what an operator asks, and the pages (nil: none), beside the API. Every other path is the API's to answer or to refuse, as it came: a
// mux here would redirect those that are not clean, with the key in the address.
func routes(api, pages, webhooks http.Handler, h *health, m *meter, c clock.Clock, logger *slog.Logger) http.Handler {
	own := map[string]http.Handler{
		"/healthz": http.HandlerFunc(h.live),
		"/readyz":  http.HandlerFunc(h.ready),
		"/metrics": m.handler(),
	}
	for path, handler := range own {
		// They are asked every few seconds, so their lines in the access log are for whoever looks for them.
		own[path] = httpkit.Wrap(readOnly(handler, logger), httpkit.Config{Logger: slog.New(lowered{logger.Handler()}), Now: c.Now})
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
		if pages != nil && web.Takes(r) {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// readOnly refuses methods that would change something.
func readOnly(h http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		err := &puntuale.Error{Code: httpkit.CodeMethod, Message: "this path does not take the method"}
		httpkit.NewProblem(r.Context(), logger, err).Write(w)
	})
}
