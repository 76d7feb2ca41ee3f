package puntuale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Connector sends messages to one network. One value serves all its sessions. Many goroutines use it at once.
//
// Connectors report failure with a [*SendError]. Any other error from Send means that nobody knows whether the network
// took the message; any other error from Prepare is a [Transient] one.
type Connector interface {
	// Capabilities never change.
	Capabilities() Capabilities

	// Online reports whether the session could send at this moment. It answers from memory.
	Online(session SessionID) bool

	// Prepare does all that can be done before the attempt: it fetches and uploads media, and checks recipient and
	// template. It may be called any number of times. The recipient sees nothing of it.
	Prepare(ctx context.Context, e Envelope) (Prepared, error)

	// Send gives the message to the network. It is called only after the attempt's intent is on disk. It returns once
	// the network accepted or refused the message.
	Send(ctx context.Context, p Prepared) (Acceptance, error)
}

// DeliveryChecker is a connector that can look up what its network holds. The dispatcher asks about attempts that have no answer and must
// not be repeated. An example is a message that was in flight when the process died.
type DeliveryChecker interface {
	// Arrived reports whether the network has the message under the envelope's ConnectorID. False proves nothing: an
	// attempt may still be on its way.
	Arrived(ctx context.Context, e Envelope) (bool, error)
}

// Capabilities are what the dispatcher must know of a connector.
type Capabilities struct {
	Name        string        // in logs and metrics
	Slots       int           // messages a session may have in flight at once, at least 1
	SendTimeout time.Duration // after this time an attempt counts as unanswered
	PerSecond   float64       // messages that a session may hand over a second at most; 0: the network has no limit
	Recovery    Recovery
}

// Recovery says what the dispatcher may do after an attempt whose answer was lost.
type Recovery int8

const (
	RecoverNone   Recovery = iota // wait for a delivery receipt; repeat only if the step asks for it
	RecoverSameID                 // repeat under the same connector id, because the network shows the message once
)

// Envelope is everything a connector may know of one message.
type Envelope struct {
	Client      ClientID
	Session     SessionID
	Run         RunID
	Message     MessageID
	ConnectorID string // the same for every attempt of one generation
	Attempt     int    // from 1
	Token       int64  // the attempt's token, never used before; set only for Send
	Repeat      bool   // an earlier attempt under this ConnectorID went unanswered: the network may have the message already
	To          string // "+…", or a group id as given
	Content     Content
}

// ConnectorID derives the network's message id from (message, generation), so that the network takes a repeat for the same message.
func ConnectorID(id MessageID, generation int) string {
	return strconv.FormatInt(int64(id), 36) + "." + strconv.Itoa(generation)
}

// Prepared is an envelope with the result of Prepare. Only the connector knows the form of Payload.
type Prepared struct {
	Envelope
	Payload any
}

// Unsure is the error of an attempt with an uncertain outcome. If a repeat certainly did not leave, the outcome stays
// uncertain, because the first attempt may have arrived.
func (p Prepared) Unsure(err error) error {
	if refusal := AsSendError(err); refusal != nil && p.Repeat {
		return &ReasonError{Reason: Because(ReasonMaybeSecond, refusal.Reason.Stored(), refusal.Detail.Stored())}
	}
	return err
}

// Acceptance is the network's acceptance.
type Acceptance struct {
	Detail Reason // the network's words and ids, for dettaglio_risposta
}

// SendErrorKind says what is certain about a failed attempt. In all kinds this attempt did not reach the network. Final
// says more: no attempt under this connector id did. A connector that cannot know this of a repeat ([Envelope.Repeat])
// returns an error that is not a [SendError].
type SendErrorKind int8

const (
	Final       SendErrorKind = iota + 1 // never try again
	Transient                            // try again with backoff
	SessionDown                          // try again once the session is online; it does not count as a failure of the message
	Throttled                            // try again after After, also the session's other messages; it does not count as a failure of the message
	Deferred                             // try again after After; messages to other recipients need not wait
)

// downWait is how long the dispatcher sends nothing on a session that failed as down but reports that it is online.
const downWait = 5 * time.Second

// SendError is a connector's proof that a message did not reach the network.
type SendError struct {
	Kind   SendErrorKind
	Reason Reason        // for people
	Detail Reason        // the network's words
	After  time.Duration // with Throttled and Deferred: the least wait
	Err    error
}

func (e *SendError) Error() string {
	return fmt.Sprintf("%s (%s)", e.Reason, e.Detail)
}

func (e *SendError) Unwrap() error { return e.Err }

// Wait is how long the message must wait before it is tried again. It is 0 for Final and Transient, which name no time.
func (e *SendError) Wait() time.Duration {
	switch e.Kind {
	case SessionDown:
		return downWait
	case Throttled, Deferred:
		return max(e.After, time.Second)
	}
	return 0
}

// SessionWait is how long all other messages of the session must wait, too; 0 if they need not.
func (e *SendError) SessionWait() time.Duration {
	if e.Kind == SessionDown || e.Kind == Throttled {
		return e.Wait()
	}
	return 0
}

// AsSendError returns the [*SendError] in err's chain, nil when there is none.
func AsSendError(err error) *SendError {
	if e, ok := errors.AsType[*SendError](err); ok {
		return e
	}
	return nil
}

// SandboxMessage is what the simulated network received.
type SandboxMessage struct {
	Seq         int64 // grows with the order of arrival
	Client      ClientID
	Message     MessageID
	ConnectorID string
	Phone       string
	Content     Content
	Received    time.Time
	Copies      int  // how often it arrived under this connector id; people see one
	Blanked     bool // Content was removed; for an erased person also Phone
}

// SandboxLedger is the simulated network's own record, separate from the message rows.
type SandboxLedger interface {
	// Receive stores the message durably before it returns. If the client's ledger already holds the connector id, it only counts the copy.
	// Many goroutines may call it at once; their writes share commits.
	Receive(ctx context.Context, m SandboxMessage) error
	// Received reports whether the client's ledger holds a message under a connector id.
	Received(ctx context.Context, client ClientID, connectorID string) (bool, error)
}
