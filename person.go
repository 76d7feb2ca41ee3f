package puntuale

import (
	"context"
	"regexp"
	"time"
)

// personID is what WhatsApp calls a business-scoped user id: a country, perhaps ENT, and letters and digits.
var personID = regexp.MustCompile(`^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$`)

// networkGroup begins as "capi_group:" does in base64.
var networkGroup = regexp.MustCompile(`^Y2FwaV9ncm91cD[A-Za-z0-9+/=_-]{8,120}$`)

// IsNetworkGroup reports whether a recipient is a group by the id that Meta's Groups API gives it. Official sessions whose
// account has that API can write to it.
func IsNetworkGroup(recipient string) bool {
	return len(recipient) <= MaxPersonID && networkGroup.MatchString(recipient)
}

// MaxPersonID is the length of the longest id, in bytes.
const MaxPersonID = 135

// IsPersonID reports whether a recipient is a person by an id that hides the number, as Official sessions can write to. Each business gets
// a different id for a person, and a new one when the person's number changes.
func IsPersonID(recipient string) bool {
	return len(recipient) <= MaxPersonID && personID.MatchString(recipient)
}

// KnownPersons are the people that sessions of type Socket know: who wrote to them, and who got something from them. WhatsApp may ban a
// number that writes to others.
type KnownPersons interface {
	// Knows reports whether the person (or group) wrote to the session, or got anything from it.
	Knows(ctx context.Context, client ClientID, session SessionID, to string) (bool, error)

	// Met notes since when the session knows a person: since the network accepted a message to them, or since they
	// wrote. Only the first note counts.
	Met(ctx context.Context, client ClientID, session SessionID, to string, at time.Time) error

	// MetSince returns the moments since one at which the session first wrote to a person, latest first, at most so
	// many.
	MetSince(ctx context.Context, client ClientID, session SessionID, since time.Time, most int) ([]time.Time, error)

	// SessionsThere returns which of the sessions still exist.
	SessionsThere(ctx context.Context, sessions []SessionID) (map[SessionID]bool, error)
}
