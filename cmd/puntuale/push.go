package main

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/media"
	"puntuale/internal/metrics"
	"puntuale/internal/push"
)

// openPushes returns the part that sends pushes about due messages, and a function that returns the public key that a
// device's browser needs to get pushes. Push services need the https address of the sender. If this service has no https address, openPushes
// returns neither.
func (s *server) openPushes(ctx context.Context, cfg *serverConfig, vault *auth.Vault, m *metrics.Meter) (*push.Notifier, func(context.Context) (string, error), error) {
	if !strings.HasPrefix(cfg.PublicURL, "https:") {
		return nil, nil, nil
	}
	keys, err := push.OpenKeys(ctx, s.store, vault, cfg.Clock)
	if err != nil {
		return nil, nil, fmt.Errorf("open the key of pushes: %w", err)
	}
	way := cfg.Push
	if way == nil {
		way = media.Transport(nil)
	}
	return push.New(push.Config{
		Store: s.store, Keys: keys, Sender: cfg.PublicURL, Memory: s.payer(), Transport: way, Clock: cfg.Clock, Logger: cfg.Logger,
		Open: func(session puntuale.SessionID, target []byte) ([]byte, error) {
			return vault.Open(puntuale.SealedPush, session.SealPlace(), target)
		},
		Observe: m.Pushed,
	}), keys.Public, nil
}
