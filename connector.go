package puntuale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Connector sends messages to one network. One value serves all sessions of that network. Many goroutines use it at
// the same time.
//
// A connector reports a failure as a [*SendError]. Any other error from Send means that nobody knows whether the
// network accepted the message. Any other error from Prepare counts as a [Transient] one.
type Connector interface {
	// Capabilities returns the same value every time.
	Capabilities() Capabilities

	// Online reports whether the session could send now. It reads only memory.
	Online(session SessionID) bool

	// Prepare does all that can be done before the attempt: it fetches and uploads media, and checks the recipient
	// and the template. The dispatcher may call it any number of times, because the recipient notices nothing.
	Prepare(ctx context.Context, e Envelope) (Prepared, error)

	// Send gives the message to the network. The dispatcher calls it only after the attempt's intent is on disk. Send
	// returns when the network has accepted or refused the message.
	Send(ctx context.Context, p Prepared) (Acceptance, error)
}

// DeliveryChecker is a connector that can ask its network which messages arrived. The dispatcher uses it for an attempt
// that has no answer and must not be repeated. An example is a message that was in flight when the process died.
type DeliveryChecker interface {
	// Arrived reports whether the network has the message under the envelope's ConnectorID. false proves nothing,
	// because the attempt may still be on its way.
	Arrived(ctx context.Context, e Envelope) (bool, error)
}

// Capabilities say what a connector and its network can do.
type Capabilities struct {
	Name        string        // shown in logs and metrics
	Slots       int           // how many messages a session may have in flight at the same time, at least 1
	SendTimeout time.Duration // after this time an attempt counts as unanswered
	PerSecond   float64       // most messages that a session may give to the network in a second; 0: no limit
	Recovery    Recovery
}

// Recovery says what the dispatcher may do after an attempt whose answer was lost.
type Recovery int8

const (
	RecoverNone   Recovery = iota // wait for a delivery receipt; send again only if the step asks for it (see [UncertainResend])
	RecoverSameID                 // repeat under the same connector id: the network then shows the message only once
)

// Envelope is everything that a connector may know about one message.
type Envelope struct {
	Client      ClientID
	Session     SessionID
	Run         RunID
	Message     MessageID
	ConnectorID string // the same for every attempt of one generation
	Attempt     int    // number of the attempt, from 1
	Token       int64  // the attempt's token, never used before; set only for Send
	Repeat      bool   // an earlier attempt under this ConnectorID got no answer: the network may have the message already
	To          string // "+…", or the id of a group
	Content     Content
	Purpose     Purpose
	Campaign    bool      // the message belongs to a campaign
	ValidUntil  time.Time // after this time the message is never sent; zero: unknown
}

// ConnectorID derives the id under which a connector hands a message to its network. Every attempt of one generation
// has the same id, so the network can recognise a repeat.
func ConnectorID(id MessageID, generation int) string {
	return strconv.FormatInt(int64(id), 36) + "." + strconv.Itoa(generation)
}

// Prepared is an envelope with the result of Prepare. Only the connector reads Payload.
type Prepared struct {
	Envelope
	Payload any
}

// Unsure returns the error of an attempt whose outcome is uncertain. If a repeat certainly did not leave, the outcome
// is still uncertain, because the first attempt may have arrived.
func (p Prepared) Unsure(err error) error {
	if refusal := AsSendError(err); refusal != nil && p.Repeat {
		return &ReasonError{Reason: Because(ReasonMaybeSecond, refusal.Reason.Stored(), refusal.Detail.Stored())}
	}
	return err
}

// Acceptance is the network's answer that it accepted a message.
type Acceptance struct {
	Detail Reason // what the network answered, including the network's ids; shown as dettaglio_risposta
}

// SendErrorKind says what is certain about a failed attempt. Every kind means that this attempt did not reach the
// network. Final also means that no earlier attempt under this connector id reached the network. If a connector cannot
// know this about a repeat ([Envelope.Repeat]), it returns an error that is not a [SendError].
type SendErrorKind int8

const (
	Final       SendErrorKind = iota + 1 // the dispatcher never tries again
	Transient                            // the dispatcher tries again after a backoff
	SessionDown                          // the dispatcher tries again when the session is online; the message's backoff does not grow
	Throttled                            // like Deferred, but the session's other messages wait, too
	Deferred                             // the dispatcher tries again after the time After; the message's backoff does not grow
)

// downWait is how long the dispatcher waits after a [SessionDown] failure, if the connector reports that the session
// is online.
const downWait = 5 * time.Second

// SendError proves that a message did not reach the network.
type SendError struct {
	Kind   SendErrorKind
	Reason Reason        // the reason that people read
	Detail Reason        // what the network reported
	After  time.Duration // only with Throttled and Deferred: the shortest wait
	Err    error
}

func (e *SendError) Error() string {
	return fmt.Sprintf("%s (%s)", e.Reason, e.Detail)
}

func (e *SendError) Unwrap() error { return e.Err }

// Wait returns how long the message must wait before the next attempt. For Final and Transient it returns 0, because
// these kinds name no time.
func (e *SendError) Wait() time.Duration {
	switch e.Kind {
	case SessionDown:
		return downWait
	case Throttled, Deferred:
		return max(e.After, time.Second)
	}
	return 0
}

// SessionWait returns how long all other messages of the session must wait. 0: they need not wait.
func (e *SendError) SessionWait() time.Duration {
	if e.Kind == SessionDown || e.Kind == Throttled {
		return e.Wait()
	}
	return 0
}

// AsSendError returns the [*SendError] in err's chain, or nil if there is none.
func AsSendError(err error) *SendError {
	if e, ok := errors.AsType[*SendError](err); ok {
		return e
	}
	return nil
}

// SandboxMessage is what the simulated network received.
type SandboxMessage struct {
	Seq         int64 // grows with each message that arrives
	Client      ClientID
	Message     MessageID
	ConnectorID string
	Phone       string
	Content     Content
	Received    time.Time
	Copies      int  // how often the message arrived under this connector id; the recipient sees it once
	Blanked     bool // Content was removed; if the person was erased, Phone was also removed
}
