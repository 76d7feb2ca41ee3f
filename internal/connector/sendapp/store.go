package sendapp

import (
	"context"
	"time"

	"puntuale"
)

// Store has the methods that the connector of gateway sessions uses. Many goroutines may call them at the same
// time.
type Store interface {
	// SealedGateway returns the session's client and its sealed keys. The keys are nil if the session has none.
	// Codes: not_found (also if the session is not of type Send_app, or is a sandbox).
	SealedGateway(ctx context.Context, session puntuale.SessionID) (puntuale.ClientID, []byte, error)

	// ChangeGateway does the same as [puntuale.Tenant].ChangeKeys, for a session of type Send_app that is no sandbox.
	ChangeGateway(ctx context.Context, session puntuale.SessionID, change puntuale.KeyChange) error

	// KeepNetworkID stores which message has a gateway's id. A later call for the same id changes nothing.
	KeepNetworkID(ctx context.Context, client puntuale.ClientID, n puntuale.NetworkID) error

	// NetworkIDs returns what KeepNetworkID stored for the ids in this session. It leaves out unknown ids.
	NetworkIDs(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, ids []string) (map[string]puntuale.NetworkID, error)

	// OpenAttempts returns the session's attempts without an outcome. It returns only attempts to the recipient, and
	// only those that began after the time in the argument since.
	OpenAttempts(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, recipient string, since time.Time) ([]puntuale.OpenAttempt, error)

	// GatewayHealth reads those messages of the session whose outcome was recorded at or after the time in the argument
	// from. Unconfirmed counts sent messages that are neither delivered nor read. The count begins with the latest
	// message whose outcome was recorded before the time in the argument to, and goes back in time. The count ends at
	// the first message that was delivered or read, or at limit. Failed is when a message last failed for the reason in
	// the argument failure. Instead of this reason, rows of earlier versions may contain the sentence in the argument
	// former.
	GatewayHealth(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, from, to time.Time, limit int, failure puntuale.Reason, former string) (puntuale.GatewayHealth, error)
}
