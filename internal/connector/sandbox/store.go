package sandbox

import (
	"context"

	"puntuale"
)

// Ledger is the simulated network's own record of what it received. It is separate from the message rows.
type Ledger interface {
	// Receive stores the message on disk before it returns. If the client's ledger already contains the connector id,
	// Receive only counts one more copy. Many goroutines may call Receive at the same time; the store commits their
	// writes together.
	Receive(ctx context.Context, m puntuale.SandboxMessage) error
	// Received reports whether the client's ledger contains a message under a connector id.
	Received(ctx context.Context, client puntuale.ClientID, connectorID string) (bool, error)
}
