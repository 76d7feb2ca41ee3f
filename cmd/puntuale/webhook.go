package main

import (
	"context"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/delivery"
	"puntuale/internal/metrics"
)

// openCaller makes the part that calls receivers of webhooks. Every node has this part, because any node may be asked
// to test a webhook.
func (s *server) openCaller(cfg *serverConfig, vault *auth.Vault) *delivery.Caller {
	allowed, _ := networksOf(cfg.WebhookAllow) // the check of the settings has already parsed these networks
	return delivery.NewCaller(delivery.CallerConfig{Clock: cfg.Clock, Logger: cfg.Logger, Allow: allowed, Chatwoot: s.chatwoot, Memory: s.payer(), Unseal: func(w *puntuale.Webhook, sealed []byte) ([]byte, error) {
		return vault.Open(puntuale.SealedWebhook, w.SealPlace(), sealed)
	}})
}

// startEvents begins to deliver events to the webhooks that this node owns.
func (s *server) startEvents(cfg *serverConfig, m *metrics.Meter) {
	s.events = delivery.New(delivery.Config{Store: s.store, Caller: s.caller, Node: s.dispatch.Node, Clock: cfg.Clock, Logger: cfg.Logger, Meter: m})
	s.events.Start()
}

// eventBacklog returns a task that measures how many facts and deliveries wait.
func (s *server) eventBacklog(m *metrics.Meter) func(context.Context) error {
	return func(ctx context.Context) error {
		b, err := s.store.OutboxBacklog(ctx, s.clock.Now())
		if err == nil {
			m.EventBacklog(b)
		}
		return err
	}
}
