// Package intake takes what comes back from networks: receipts of messages that were sent, what people wrote, and what
// they want. It is on disk before the network hears that it was taken, so what fails is told again. Everything may be told
// again without an effect.
package intake

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is what an [Intake] needs.
type Config struct {
	Store puntuale.IntakeStore
	// Mark is what stands for a phone in the blacklist of a client that erased persons; nil: nothing does.
	Mark func(client puntuale.ClientID, phone string) string
	// Country returns the country of a phone number as two letters, "" for none; nil: nobody knows.
	Country func(phone string) string
	Clock   clock.Clock  // nil: the system's
	Logger  *slog.Logger // nil: slog.Default
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
	if cfg.Country == nil {
		cfg.Country = func(string) string { return "" }
	}
	return &Intake{cfg}
}

// Take keeps what a session's network told. With an error nothing is certain, and all of it should be told again.
func (in *Intake) Take(ctx context.Context, session puntuale.SessionID, told puntuale.InboundBatch) error {
	now := in.cfg.Clock.Now()
	log := in.cfg.Logger.With("session_id", int64(session))
	if len(told.Aliases) > 0 { // before all that may need them
		if err := in.cfg.Store.KeepAliases(ctx, told.Aliases); err != nil {
			return fmt.Errorf("keep other names of people: %w", err)
		}
	}
	if len(told.Heard) > 0 { // before receipts: a window that opens is waited for
		heard, err := in.heard(ctx, told.Heard)
		if err != nil {
			return err
		}
		stopped, err := in.cfg.Store.KeepHeard(ctx, now, heard)
		if err != nil {
			return fmt.Errorf("keep what people wrote: %w", err)
		}
		if stopped > 0 {
			log.Info("a reply stopped messages", "messages", stopped)
		}
	}
	if len(told.Evidence) > 0 {
		for i := range told.Evidence {
			if c := &told.Evidence[i].Charge; c.Category != "" {
				c.Country = in.cfg.Country(c.Phone)
			}
		}
		unknown, err := in.cfg.Store.KeepEvidence(ctx, now, told.Evidence)
		if err != nil {
			return fmt.Errorf("keep evidence: %w", err)
		}
		if unknown > 0 {
			log.Info("the network told of messages that are not this session's", "messages", unknown)
		}
	}
	for _, p := range told.Preferences {
		if err := in.preference(ctx, now, log, p); err != nil {
			return err
		}
	}
	for _, n := range told.Templates {
		if err := in.template(ctx, log, n); err != nil {
			return err
		}
	}
	return nil
}

// heard replaces the name under which a person wrote with each recipient that the name stands for.
func (in *Intake) heard(ctx context.Context, all []puntuale.InboundMessage) (out []puntuale.InboundMessage, err error) {
	for _, h := range all {
		names, err := in.cfg.Store.Recipients(ctx, h.Client, h.Session, h.Phone)
		if err != nil {
			return nil, fmt.Errorf("find who wrote: %w", err)
		}
		for _, h.Phone = range names {
			out = append(out, h)
		}
	}
	return out, nil
}

func (in *Intake) preference(ctx context.Context, now time.Time, log *slog.Logger, p puntuale.Preference) error {
	names, err := in.cfg.Store.Recipients(ctx, p.Client, p.Session, p.Phone)
	if err != nil {
		return fmt.Errorf("find whose preference it is: %w", err)
	}
	for _, p.Phone = range names {
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

func (in *Intake) template(ctx context.Context, log *slog.Logger, n puntuale.TemplateEvent) error {
	if err := in.cfg.Store.TellNetworkTemplate(ctx, n); err != nil {
		return fmt.Errorf("keep news of a template: %w", err)
	}
	if use, _ := n.Status.Use(); n.Status != "" && use != puntuale.TemplateUsable {
		log.Warn("the network no longer takes a template", "template", n.Name, "status", n.Status)
	}
	return nil
}
