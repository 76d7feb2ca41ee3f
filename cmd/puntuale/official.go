package main

import (
	"net/http"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/connector/official"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"puntuale/internal/intake"
)

// openOfficial makes the way to Meta, and what takes what Meta tells. Every node has it: webhooks land on any that answers
// calls, sessions are opened only where messages are sent.
func (s *server) openOfficial(cfg serverConfig, vault *auth.Vault) {
	s.intake = intake.New(intake.Config{
		Store: s.store, Clock: cfg.Clock, Logger: cfg.Logger,
		Mark: func(client puntuale.ClientID, phone string) string { return control.Mark(vault, client, phone) },
	})
	c := official.Config{
		Store: s.store, Unseal: vault.Open, Take: s.intake.Take, Report: s.report,
		API: cfg.OfficialAPIURL, Version: cfg.OfficialVersion, Rate: cfg.OfficialRate, Clock: cfg.Clock, Logger: cfg.Logger,
	}
	if s.media != nil {
		c.Media = s.media
	}
	s.official = official.New(c)
	official.WarnOfVersion(cfg.Logger, cfg.OfficialVersion, cfg.Clock.Now())
}

// report takes what a connector tells of a session.
func (s *server) report(r puntuale.LinkReport) {
	if s.sessions != nil {
		s.sessions.Report(r)
	}
}

// webhooks answers Meta and gateways: no key, limits of their own. nil: this server answers no calls.
func (s *server) webhooks(cfg serverConfig, m *meter) http.Handler {
	if !cfg.has(roleAPI) {
		return nil
	}
	meta, gateways := s.official.NewWebhook(), s.sendapp.NewWebhook()
	return httpkit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, puntuale.OfficialWebhooks):
			httpkit.Matched(r.Context(), r.Method+" "+puntuale.OfficialWebhooks+"{id}")
			meta.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, puntuale.GatewayWebhooks): // its secret never stands in a log
			httpkit.Matched(r.Context(), r.Method+" "+puntuale.GatewayWebhooks+"{id}")
			gateways.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}), httpkit.Config{Logger: cfg.Logger, Now: cfg.Clock.Now, Observe: m.Request, Proxies: cfg.proxies()})
}
