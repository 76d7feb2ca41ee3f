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
	CommandTest   CommandVerb = "test"   // no detail; the connector looks anew whether the session could send

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
	Expires time.Time // not to be taken after
	Taken   NodeID    // who began to carry it out; 0: nobody yet
}

// Harmless reports whether a command may be carried out once more by a node that cannot know how far another one came.
// A pairing is not: each may ring at somebody's phone, and the network counts them.
func (c Command) Harmless() bool { return c.Verb != CommandPair }

// PairOrder says how to link a session.
type PairOrder struct {
	Method PairMethod `json:"method"`
	Phone  string     `json:"phone,omitempty"` // "+…", with PairCode
}

// DrainOrder has a session begin nothing new until a moment, whatever becomes of the node that asked for it.
type DrainOrder struct {
	Until time.Time `json:"until"`
}

// CommandAnswer is what came of a command; without a code it was done.
type CommandAnswer struct {
	Code       Code          `json:"code,omitempty"`
	Reason     string        `json:"message,omitempty"` // the stored form of a [Reason]
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

// AnswerOf makes an answer of what a command came to. Errors that are for nobody to read are told as internal.
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

// Orders and answers are JSON before they are sealed. These types have nothing that could fail to become JSON.
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

// What commands and codes are sealed for (see the vault). Their place is their session's.
const (
	SealedCommand = "command"
	SealedAnswer  = "answer to a command"
	SealedCode    = "pairing code"
)

// SealPlace is the place of what is sealed for a session.
func (id SessionID) SealPlace() string { return "session " + id.String() }

// CommandStore gives commands. It is part of a [Tenant].
type CommandStore interface {
	// GiveCommand stores a command, of which Client, ID and Taken are not looked at. Codes: not_found (the session),
	// busy (too many commands of the session are waiting).
	GiveCommand(ctx context.Context, c Command) (CommandID, error)

	// CommandAnswer returns the sealed answer, nil while there is none. Codes: not_found once command or answer expired.
	CommandAnswer(ctx context.Context, id CommandID, now time.Time) ([]byte, error)
}

// LinkStore is what the node that owns a session does about its commands and its link. Each call compares the owner: for
// a session that is no longer the node's nothing is written. [ErrFenced]: the lease is gone, and nothing was.
type LinkStore interface {
	// OpenCommands returns the commands of the node's sessions that have neither an answer nor expired, by id. It only
	// reads, and is for every second.
	OpenCommands(ctx context.Context, node NodeID, now time.Time) ([]Command, error)

	// TakeCommand marks a command as the node's to carry out, and keeps it until the moment. It reports false when it was
	// answered or expired meanwhile, or is no longer for this node.
	TakeCommand(ctx context.Context, node NodeID, id CommandID, now, until time.Time) (bool, error)

	// AnswerCommand stores a command's answer, sealed, to be read until the moment.
	AnswerCommand(ctx context.Context, node NodeID, id CommandID, answer []byte, now, until time.Time) error

	// SetLinks stores how far sessions are from sending; a Since that is zero is now where the state changed.
	SetLinks(ctx context.Context, node NodeID, now time.Time, links map[SessionID]Link) error
}
