// Package intake stores the reports of networks: delivery receipts, replies of people, and their consent. A network
// gets its answer only after everything is on disk. After a failure, Meta and WhatsApp send their report again, but
// gateways do not. A report that arrives twice has only one effect.
package intake

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/clock"
)

// Config contains the parts and settings of an [Intake].
type Config struct {
	Store Store
	// Mark returns the keyed hash that replaces an erased person's number in a client's blacklist. If Mark is nil, no
	// keyed hash is stored.
	Mark func(client puntuale.ClientID, phone string) string
	// MessageMark returns the keyed hash by which the store recognises a message that arrives again. If MessageMark is
	// nil, replies are not stored.
	MessageMark func(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string
	// Confirm sends the confirmation of an opt-out. It sends only once for each key. If Confirm is nil, nothing is sent.
	Confirm func(ctx context.Context, c Confirmation) error
	// Tap reads the payload of a button that this server sent. If Tap is nil, no payload is.
	Tap func(client puntuale.ClientID, payload string) (puntuale.Tap, bool)
	// Answer changes the booking that a message answers, and stores the message in the same transaction. If Answer is
	// nil, the message is only stored.
	Answer func(ctx context.Context, m puntuale.TakenMessage, f booking.FoundAnswer) error
	// Country returns the country of a phone number as two letters, or "" if the country is not known. If Country is nil,
	// no country is known.
	Country func(phone string) string
	Clock   clock.Clock  // nil: the system's clock
	Logger  *slog.Logger // nil: slog.Default
}

// Intake stores reports. It is safe for concurrent use. It works on any node, because the node that stores a report
// need not own the session.
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

// sessionLog returns the logger of a session. It is called only if there is something to log.
type sessionLog func() *slog.Logger

// Take stores the reports of a session's network. After an error, a part of the reports may be stored, and the network
// should send all of them again.
func (in *Intake) Take(ctx context.Context, session puntuale.SessionID, reported puntuale.InboundBatch) error {
	now := in.cfg.Clock.Now()
	log := func() *slog.Logger { return in.cfg.Logger.With("session_id", int64(session)) }
	if len(reported.Aliases) > 0 { // aliases are stored before the rest, because the code below uses them
		if err := in.cfg.Store.KeepAliases(ctx, reported.Aliases); err != nil {
			return fmt.Errorf("keep other names of people: %w", err)
		}
	}
	for _, c := range reported.Changes { // a person's first message under a new name comes after the change
		if err := in.changeNumber(ctx, now, log, c); err != nil {
			return err
		}
	}
	if len(reported.Messages) > 0 { // messages are stored before receipts, because sessions may wait for the 24-hour window that a message opens
		if err := in.takeMessages(ctx, now, log, reported.Messages); err != nil {
			return err
		}
	}
	if len(reported.Receipts) > 0 {
		for i := range reported.Receipts {
			if c := &reported.Receipts[i].Charge; c.Category != "" && c.Phone != "" {
				c.Country = in.cfg.Country(c.Phone)
			}
		}
		unknown, err := in.cfg.Store.KeepReceipts(ctx, now, reported.Receipts)
		if err != nil {
			return fmt.Errorf("keep evidence: %w", err)
		}
		if unknown > 0 {
			log().Info("the network told of messages that are not this session's", "messages", unknown)
		}
	}
	for _, p := range reported.Preferences {
		if err := in.preference(ctx, now, log, p); err != nil {
			return err
		}
	}
	for _, n := range reported.Templates {
		if err := in.template(ctx, log, n); err != nil {
			return err
		}
	}
	return nil
}

// changeNumber moves a person to new names. The network's message is no reply: it opens no window and triggers nothing.
func (in *Intake) changeNumber(ctx context.Context, now time.Time, log sessionLog, c puntuale.NumberChange) error {
	c.NameMark = func(name string) string { return in.cfg.Mark(c.Client, name) }
	if c.Mark = c.Session.String() + " " + c.ID; in.cfg.MessageMark != nil {
		c.Mark = in.cfg.MessageMark(c.Client, c.Session, "", c.ID)
	}
	if err := in.cfg.Store.ChangeNumber(ctx, now, c); err != nil {
		return fmt.Errorf("move a person to a new number: %w", err)
	}
	log().Info("the network told that a person has another number or id")
	return nil
}

func (in *Intake) template(ctx context.Context, log sessionLog, n puntuale.TemplateEvent) error {
	if err := in.cfg.Store.TellNetworkTemplate(ctx, n); err != nil {
		return fmt.Errorf("keep news of a template: %w", err)
	}
	if use, _ := n.Status.Use(); n.Status != "" && use != puntuale.TemplateUsable {
		log().Warn("the network no longer takes a template", "template", n.Name, "status", n.Status)
	}
	return nil
}
