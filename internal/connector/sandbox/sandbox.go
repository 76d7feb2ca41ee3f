// Package sandbox is a simulated network. It keeps a durable ledger of what reached it, separate from the message rows. Like WhatsApp, it
// shows a message once, even if it is repeated under the same connector id. Numbers with some endings misbehave on purpose, so that
// integrators can see every outcome.
package sandbox

import (
	"context"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Endings of phone numbers with a meaning. Groups have none.
const (
	EndingRefused = "9901" // refused for good
	EndingTwice   = "9902" // refused at the first attempt, accepted at the next
	EndingSlow    = "9903" // in the ledger at once, and accepted SlowAnswer later
	EndingLost    = "9904" // in the ledger at once, and the answer is lost each time
)

const (
	// SlowAnswer is how long a slow acceptance takes, and after how long a lost answer is noticed.
	SlowAnswer = 2 * time.Second

	slots       = 1000
	sendTimeout = 10 * time.Second // added to the latency
)

// A lost answer gives errLost, which is no [puntuale.SendError]: nobody can know whether the network has the message.
// The reasons say why a message or a link failed at the simulated network.
const (
	reasonUnlinked     puntuale.ReasonCode = "sandbox.unlinked"
	reasonRefused      puntuale.ReasonCode = "sandbox.refused"
	reasonEnding       puntuale.ReasonCode = "sandbox.ending" // {1}: what the number ends in
	reasonDown         puntuale.ReasonCode = "sandbox.down"
	reasonFirstAttempt puntuale.ReasonCode = "sandbox.first_attempt" // {1}: what the number ends in
	reasonAnswerLost   puntuale.ReasonCode = "sandbox.answer_lost"
	reasonPairingOver  puntuale.ReasonCode = "sandbox.pairing_over"
	reasonCodeUnused   puntuale.ReasonCode = "sandbox.code_unused"
)

var errLost = &puntuale.ReasonError{Reason: puntuale.Because(reasonAnswerLost)}

// Connector is the way to the simulated network. Every session is online, unless it has links ([Connector.WithLinks]).
type Connector struct {
	ledger  puntuale.SandboxLedger
	clock   clock.Clock
	latency time.Duration
	media   puntuale.MediaSource // nil: no media are fetched
	links   *links               // nil: every session is online
}

// New returns a connector. Each message needs latency (0 or more) until it arrives. It does not fetch media.
func New(ledger puntuale.SandboxLedger, clock clock.Clock, latency time.Duration) *Connector {
	return &Connector{ledger: ledger, clock: clock, latency: max(0, latency)}
}

// WithMedia returns a connector like c that fetches each message's media from source before the message may leave, as
// the connectors of real networks do. With a nil source it fetches nothing.
func (c *Connector) WithMedia(source puntuale.MediaSource) *Connector {
	with := *c
	with.media = source
	return &with
}

func (c *Connector) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{
		Name: "sandbox", Slots: slots, SendTimeout: sendTimeout + c.latency, Recovery: puntuale.RecoverSameID,
	}
}

// Prepare checks that the media can be fetched, if the connector has a source for them. The simulated network shows the
// address itself.
func (c *Connector) Prepare(ctx context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	if err := ctx.Err(); err != nil {
		return puntuale.Prepared{}, err
	}
	if c.media != nil && e.Content.MediaURL != "" {
		m, err := c.media.Fetch(ctx, puntuale.MediaRequest{Client: e.Client, Run: e.Run, URL: e.Content.MediaURL})
		if err != nil {
			return puntuale.Prepared{}, err
		}
		_ = m.Close() // it was only read from
	}
	return puntuale.Prepared{Envelope: e}, nil
}

// Send writes the message to the ledger before it reports an acceptance. So each accepted message certainly arrived.
func (c *Connector) Send(ctx context.Context, p puntuale.Prepared) (puntuale.Acceptance, error) {
	if err := c.travel(ctx); err != nil {
		return puntuale.Acceptance{}, err
	}
	magic := ending(p.To)
	switch {
	case !c.Online(p.Session):
		return puntuale.Acceptance{}, &puntuale.SendError{Kind: puntuale.SessionDown, Reason: puntuale.Because(puntuale.ReasonNotLinked), Detail: puntuale.Because(reasonUnlinked)}
	case magic == EndingRefused:
		return puntuale.Acceptance{}, &puntuale.SendError{
			Kind: puntuale.Final, Reason: puntuale.Because(reasonRefused), Detail: puntuale.Because(reasonEnding, EndingRefused),
		}
	case magic == EndingTwice && p.Attempt == 1:
		return puntuale.Acceptance{}, &puntuale.SendError{
			Kind: puntuale.Transient, Reason: puntuale.Because(reasonDown), Detail: puntuale.Because(reasonFirstAttempt, EndingTwice),
		}
	}
	err := c.ledger.Receive(ctx, puntuale.SandboxMessage{
		Client: p.Client, Message: p.Message, ConnectorID: p.ConnectorID,
		Phone: p.To, Content: p.Content, Received: c.clock.Now(),
	})
	if err != nil {
		return puntuale.Acceptance{}, err
	}
	if magic == EndingSlow || magic == EndingLost {
		if err := c.clock.Sleep(ctx, SlowAnswer); err != nil {
			return puntuale.Acceptance{}, err
		}
	}
	if magic == EndingLost {
		return puntuale.Acceptance{}, errLost
	}
	return puntuale.Acceptance{Detail: puntuale.Quoted("sandbox: " + p.ConnectorID)}, nil
}

// Arrived looks into the ledger. For numbers whose answers are lost it always returns false, as if the network never
// reported the message.
func (c *Connector) Arrived(ctx context.Context, e puntuale.Envelope) (bool, error) {
	if ending(e.To) == EndingLost {
		return false, nil
	}
	return c.ledger.Received(ctx, e.Client, e.ConnectorID)
}

// travel waits for the latency. A message whose wait was cut short certainly did not arrive.
func (c *Connector) travel(ctx context.Context) error {
	err := ctx.Err()
	if err == nil && c.latency > 0 {
		err = c.clock.Sleep(ctx, c.latency)
	}
	if err != nil {
		return &puntuale.SendError{
			Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonInterrupted), Detail: puntuale.Quoted("sandbox: " + err.Error()), Err: err,
		}
	}
	return nil
}

// ending returns the magic ending of a phone number, "" for other numbers and for groups.
func ending(to string) string {
	if !strings.HasPrefix(to, "+") || len(to) < 5 {
		return ""
	}
	switch e := to[len(to)-4:]; e {
	case EndingRefused, EndingTwice, EndingSlow, EndingLost:
		return e
	}
	return ""
}
