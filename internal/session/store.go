package session

import (
	"context"
	"time"

	"puntuale"
)

// Store has the methods with which a node reads the commands of its sessions, answers them, and writes links. Each
// method checks that the node owns the session; if it does not, the method writes nothing. [puntuale.ErrFenced]: the lease is
// gone, and nothing was written.
type Store interface {
	// OpenCommands returns the commands of the node's sessions that have no answer and have not expired, sorted by
	// id. The node may call it every second, because it only reads.
	OpenCommands(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.Command, error)

	// TakeCommand marks a command as taken by the node. The store may delete the command after the time expiresAt.
	// TakeCommand returns false if the command has an answer, has expired, or belongs to another node now.
	TakeCommand(ctx context.Context, node puntuale.NodeID, id puntuale.CommandID, now, expiresAt time.Time) (bool, error)

	// AnswerCommand stores the sealed answer to a command. The store may delete the answer after the time expiresAt.
	AnswerCommand(ctx context.Context, node puntuale.NodeID, id puntuale.CommandID, answer []byte, now, expiresAt time.Time) error

	// SetLinks stores the links of sessions. If a state changed and the link's Since is zero, SetLinks stores now as
	// Since.
	SetLinks(ctx context.Context, node puntuale.NodeID, now time.Time, links map[puntuale.SessionID]puntuale.Link) error
}
