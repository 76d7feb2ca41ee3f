package puntuale

import (
	"context"
	"time"
)

// Contact is what a session knows of a person.
type Contact struct {
	Window time.Time // until then an Official session may send free text; zero: the person never wrote
	Known  bool      // the person wrote to the session, or got something from it
}

// SessionLoad is what a session did since a moment, and what its network allows.
type SessionLoad struct {
	Sent      int // messages that left
	Met       int // people whom it got to know
	Addressed int // people to whom all numbers of its business wrote outside their windows
	Portfolio int // such people whom the network allows in 24 hours; 0: any number, or the network did not say
}

// EstimateStore is what the estimates of a campaign read. Codes: not_found.
type EstimateStore interface {
	// Contacts returns what the session knows of the phones; of those that are left out it knows nothing.
	Contacts(ctx context.Context, session SessionID, phones []string) (map[string]Contact, error)
	// SessionLoad reads the client's outcomes since the moment by their index, once a check.
	SessionLoad(ctx context.Context, session SessionID, since time.Time) (SessionLoad, error)
}
