package socket

import (
	"context"
	"time"

	"puntuale"
)

// KnownPersons remembers which people a session of type Socket knows. A session knows a person who wrote to it or got a
// message from it. WhatsApp may ban a number that writes to people that its session does not know.
type KnownPersons interface {
	// Knows reports whether the person or group wrote to the session, or got a message from it.
	Knows(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, to string) (bool, error)

	// NoteKnown stores since when the session knows a person. At this time the network first accepted a message to the
	// person, or the person first wrote. Only the first call for a person changes something.
	NoteKnown(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, to string, at time.Time) error

	// MetSince returns when the session wrote for the first time to people who had not written before, the latest
	// first. It returns no time before the argument since, and at most limit times.
	MetSince(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, limit int) ([]time.Time, error)

	// SessionsThere returns which of the given sessions still exist.
	SessionsThere(ctx context.Context, sessions []puntuale.SessionID) (map[puntuale.SessionID]bool, error)
}
