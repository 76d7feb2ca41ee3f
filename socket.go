package puntuale

import (
	"context"
	"time"
)

// Acquaintances are the people that sessions of type Socket know: who wrote to them, and who got something from them.
// WhatsApp bears messages to others badly.
type Acquaintances interface {
	// Knows reports whether the person (or group) wrote to the session, or got anything from it.
	Knows(ctx context.Context, client ClientID, session SessionID, to string) (bool, error)

	// Met notes since when the session knows somebody. Either the network took a message to them, or, at a moment long
	// past, they wrote first. The first time counts.
	Met(ctx context.Context, client ClientID, session SessionID, to string, at time.Time) error

	// MetSince returns the moments since one at which the session got to know somebody by its own message, latest first, at
	// most so many.
	MetSince(ctx context.Context, client ClientID, session SessionID, since time.Time, most int) ([]time.Time, error)

	// SessionsThere returns which of the sessions are there still.
	SessionsThere(ctx context.Context, sessions []SessionID) (map[SessionID]bool, error)
}
