// Package sandbox is a simulated network. It has a durable ledger of the messages that arrived, separate from the
// message rows. Like WhatsApp, it shows a message once, even if the message is repeated under the same connector id.
// Numbers with some endings fail on purpose, so that integrators can see every outcome.
package sandbox

import (
	"context"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// A message to a phone number with one of these endings has a special outcome. Groups have no such endings.
const (
	EndingRefused = "9901" // refused for good
	EndingTwice   = "9902" // refused at the first attempt, accepted at the second
	EndingSlow    = "9903" // in the ledger immediately, but accepted only after SlowAnswer
	EndingLost    = "9904" // in the ledger immediately, but the answer is lost at each attempt
)

const (
	// SlowAnswer is how long a slow acceptance takes. A lost answer is noticed after the same time.
	SlowAnswer = 2 * time.Second

	slots       = 1000
	sendTimeout = 10 * time.Second // the timeout of a send is the latency plus this time
)

// Reasons why a message or a link failed at the simulated network. A lost answer gives errLost, which is not a
// [puntuale.SendError], because nobody can know whether the network has the message.
const (
	reasonUnlinked     puntuale.ReasonCode = "sandbox.unlinked"
	reasonRefused      puntuale.ReasonCode = "sandbox.refused"
	reasonEnding       puntuale.ReasonCode = "sandbox.ending" // {1}: the number's ending
	reasonDown         puntuale.ReasonCode = "sandbox.down"
	reasonFirstAttempt puntuale.ReasonCode = "sandbox.first_attempt" // {1}: the number's ending
	reasonAnswerLost   puntuale.ReasonCode = "sandbox.answer_lost"
	reasonPairingOver  puntuale.ReasonCode = "sandbox.pairing_over"
	reasonCodeUnused   puntuale.ReasonCode = "sandbox.code_unused"
)

var errLost = &puntuale.ReasonError{Reason: puntuale.Because(reasonAnswerLost)}

// Connector sends to the simulated network. Every session is online, unless the connector has links
// ([Connector.WithLinks]).
type Connector struct {
	ledger  Ledger
	clock   clock.Clock
	latency time.Duration
	media   puntuale.MediaSource // nil: the connector does not fetch media
	links   *links               // nil: every session is online
}

// New returns a connector. Each message arrives after latency (0 or more). The connector does not fetch media.
func New(ledger Ledger, clock clock.Clock, latency time.Duration) *Connector {
	return &Connector{ledger: ledger, clock: clock, latency: max(0, latency)}
}

// WithMedia returns a connector like c. In Prepare, the new connector fetches each message's media from source, as the
// connectors of real networks do. If source is nil, the new connector fetches nothing.
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

// Prepare checks that the media can be fetched, if the connector has a source of media. The simulated network shows
// only the media's address.
func (c *Connector) Prepare(ctx context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	if err := ctx.Err(); err != nil {
		return puntuale.Prepared{}, err
	}
	if c.media != nil && e.Content.MediaURL != "" {
		m, err := c.media.Fetch(ctx, puntuale.MediaRequest{Client: e.Client, Run: e.Run, URL: e.Content.MediaURL})
		if err != nil {
			return puntuale.Prepared{}, err
		}
		_ = m.Close() // the file was only read, so an error of Close does no harm
	}
	return puntuale.Prepared{Envelope: e}, nil
}

// Send writes the message to the ledger before it returns an acceptance. So each accepted message has arrived.
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

// Arrived reports whether the ledger has the message. For numbers with EndingLost it always returns false, like a
// network that never reports the message.
func (c *Connector) Arrived(ctx context.Context, e puntuale.Envelope) (bool, error) {
	if ending(e.To) == EndingLost {
		return false, nil
	}
	return c.ledger.Received(ctx, e.Client, e.ConnectorID)
}

// travel waits for the latency. If ctx ends first, travel returns an error, and the message did not arrive.
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

// ending returns the special ending of a phone number. It returns "" for other numbers and for groups.
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
