package main

import (
	"net/http"

	"puntuale/internal/hook"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/logging"
	"puntuale/internal/metrics"
)

// hooks returns the handler for programs that post to the hooks of automations. It is nil if this server does not have
// the server role api.
func (s *server) hooks(cfg serverConfig, m *metrics.Meter, admit admission.Limits) http.Handler {
	if !cfg.has(roleAPI) {
		return nil
	}
	return hook.New(hook.Config{
		Automations: s.rules, Logger: s.outage.Watching(logging.Sampled(cfg.Logger, cfg.AccessLog)), Now: cfg.Clock.Now, Admit: admit, Proxies: cfg.proxies(), Observe: m.Request,
	})
}
