package puntuale

import (
	"context"
	"encoding/json"
	"time"
)

// CommandID names a command.
type CommandID int64

// CommandVerb is what a command asks of the node that owns a session.
type CommandVerb string

const (
	CommandPair   CommandVerb = "pair"   // detail: [PairOrder]
	CommandUnlink CommandVerb = "unlink" // no detail
	CommandDrain  CommandVerb = "drain"  // detail: [DrainOrder]; answered once nothing of the session is in flight
	CommandResume CommandVerb = "resume" // no detail; ends a drain before its time
	CommandTest   CommandVerb = "test"   // no detail; the connector tests again whether the session could send

	CommandReconnect CommandVerb = "reconnect" // no detail; the connector connects the session at once
)

// Command is an order to the node that owns a session, given by any node. The caller waits for its answer.
type Command struct {
	ID      CommandID
	Client  ClientID
	Session SessionID
	Verb    CommandVerb
	Detail  []byte // sealed
	Created time.Time
	Expires time.Time // no node takes the command after this moment
	Taken   NodeID    // the node that began to execute it; 0: none yet
}

// Harmless reports whether a node may repeat a command that another node perhaps executed. A pairing is not harmless:
// each one may alert somebody's phone, and the network counts pairings.
func (c Command) Harmless() bool { return c.Verb != CommandPair }

// PairOrder says how to link a session.
type PairOrder struct {
	Method PairMethod `json:"method"`
	Phone  string     `json:"phone,omitempty"` // "+…", with PairCode
}

// DrainOrder stops a session from beginning anything new until a moment, even if the node that asked for it dies.
type DrainOrder struct {
	Until time.Time `json:"until"`
}

// CommandAnswer is the result of a command. Without a code, the command succeeded.
type CommandAnswer struct {
	Code       Code          `json:"code,omitempty"`
	Reason     string        `json:"message,omitempty"` // the stored form of a [Reason]
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

// AnswerOf makes an answer from a command's error. Errors that are not meant for callers become "internal".
func AnswerOf(err error) CommandAnswer {
	if err == nil {
		return CommandAnswer{}
	}
	e := &Error{Code: CodeInternal, Reason: Because(FaultCommandFailed)}
	if found := asError(err); found != nil {
		e = found
	}
	return CommandAnswer{e.Code, e.Reason.Stored(), e.RetryAfter}
}

// Err is the inverse of [AnswerOf].
func (a CommandAnswer) Err() error {
	if a.Code == "" {
		return nil
	}
	return &Error{Code: a.Code, Reason: ParseReason(a.Reason), RetryAfter: a.RetryAfter}
}

// Orders and answers are JSON before they are sealed. Marshalling these types cannot fail.
func (o PairOrder) JSON() []byte     { return jsonOf(o) }
func (o DrainOrder) JSON() []byte    { return jsonOf(o) }
func (a CommandAnswer) JSON() []byte { return jsonOf(a) }
func (c PairingCode) JSON() []byte   { return jsonOf(c) }

func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}

// The purposes for which commands and codes are sealed (see the vault). Each is sealed for one session.
const (
	SealedCommand = "command"
	SealedAnswer  = "answer to a command"
	SealedCode    = "pairing code"
)

// SealPlace is the place (see the vault) under which data of a session are sealed.
func (id SessionID) SealPlace() string { return "session " + id.String() }

// CommandStore gives commands. It is part of a [Tenant].
type CommandStore interface {
	// GiveCommand stores a command. It ignores Client, ID and Taken. Codes: not_found (the session), busy (too many commands of the session
	// are waiting).
	GiveCommand(ctx context.Context, c Command) (CommandID, error)

	// CommandAnswer returns the sealed answer, nil while there is none. Codes: not_found once command or answer expired.
	CommandAnswer(ctx context.Context, id CommandID, now time.Time) ([]byte, error)
}

// LinkStore has the commands and the link of a session, for the node that owns it. Each call checks the owner: for a
// session that the node no longer owns, it writes nothing. [ErrFenced]: the lease is gone, and nothing was written.
type LinkStore interface {
	// OpenCommands returns the commands of the node's sessions that have no answer and have not expired, by id. It only reads, so a node
	// may call it every second.
	OpenCommands(ctx context.Context, node NodeID, now time.Time) ([]Command, error)

	// TakeCommand marks a command as taken by the node, and keeps it until the moment. It reports false when the command has an answer, has
	// expired, or is no longer for this node.
	TakeCommand(ctx context.Context, node NodeID, id CommandID, now, until time.Time) (bool, error)

	// AnswerCommand stores a command's sealed answer until the moment.
	AnswerCommand(ctx context.Context, node NodeID, id CommandID, answer []byte, now, until time.Time) error

	// SetLinks stores the link states of sessions. Where the state changed and Since is zero, it stores the present moment.
	SetLinks(ctx context.Context, node NodeID, now time.Time, links map[SessionID]Link) error
}
