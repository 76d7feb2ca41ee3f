// Package intake takes what comes back from networks: receipts of messages that were sent, what people wrote, and what
// they want. It is on disk before the network hears that it was taken, so that what fails is told again; and everything
// may be told again without an effect.
package intake

import (
	"context"
	"fmt"
	"log/slog"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is what an [Intake] needs.
type Config struct {
	Store puntuale.IntakeStore
	// Mark is what stands for a phone in the blacklist of a client that erased persons; nil: nothing does.
	Mark   func(client puntuale.ClientID, phone string) string
	Clock  clock.Clock  // nil: the system's
	Logger *slog.Logger // nil: slog.Default
}

// Intake may be used by many goroutines at once, on any node: evidence needs no owner.
type Intake struct{ cfg Config }

// New returns an intake.
func New(cfg Config) *Intake {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Mark == nil {
		cfg.Mark = func(puntuale.ClientID, string) string { return "" }
	}
	return &Intake{cfg}
}

// Take keeps what a session's network told. With an error nothing is certain, and all of it should be told again.
func (in *Intake) Take(ctx context.Context, session puntuale.SessionID, told puntuale.Incoming) error {
	now := in.cfg.Clock.Now()
	log := in.cfg.Logger.With("session_id", int64(session))
	if len(told.Heard) > 0 { // before receipts: a window that opens is waited for
		stopped, err := in.cfg.Store.KeepHeard(ctx, now, told.Heard)
		if err != nil {
			return fmt.Errorf("keep what people wrote: %w", err)
		}
		if stopped > 0 {
			log.Info("a reply stopped messages", "messages", stopped)
		}
	}
	if len(told.Evidence) > 0 {
		unknown, err := in.cfg.Store.KeepEvidence(ctx, now, told.Evidence)
		if err != nil {
			return fmt.Errorf("keep evidence: %w", err)
		}
		if unknown > 0 {
			log.Info("the network told of messages that are not this session's", "messages", unknown)
		}
	}
	for _, p := range told.Preferences {
		p.Mark = in.cfg.Mark(p.Client, p.Phone)
		changed, err := in.cfg.Store.KeepPreference(ctx, now, p)
		if err != nil {
			return fmt.Errorf("keep a preference: %w", err)
		}
		if changed {
			log.Info("a person's preference changed the blacklist", "stop", p.Stop)
		}
	}
	return nil
}
