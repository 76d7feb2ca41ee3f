package puntuale

import (
	"context"
	"regexp"
	"time"
)

// personID matches WhatsApp's business-scoped user id: a country, perhaps ENT, then letters and digits, joined by
// dots.
var personID = regexp.MustCompile(`^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$`)

// networkGroup matches the id of a group. Its beginning is "capi_group:" in base64.
var networkGroup = regexp.MustCompile(`^Y2FwaV9ncm91cD[A-Za-z0-9+/=_-]{8,120}$`)

// IsNetworkGroup reports whether a recipient is the id of a group in Meta's Groups API. Official sessions whose
// account has that API can write to the group.
func IsNetworkGroup(recipient string) bool {
	return len(recipient) <= MaxPersonID && networkGroup.MatchString(recipient)
}

// MaxPersonID is the length of the longest id of a person or group, in bytes.
const MaxPersonID = 135

// IsPersonID reports whether a recipient is an id of a person that hides the number. Only Official sessions can write
// to it. Each business gets another id for the same person. The id changes when the person's number changes.
func IsPersonID(recipient string) bool {
	return len(recipient) <= MaxPersonID && personID.MatchString(recipient)
}

// KnownPersons remembers the people that sessions of type Socket know. A session knows a person who wrote to it or
// got a message from it. WhatsApp may ban a number that writes to people it does not know.
type KnownPersons interface {
	// Knows reports whether the person or group wrote to the session, or got a message from it.
	Knows(ctx context.Context, client ClientID, session SessionID, to string) (bool, error)

	// NoteKnown notes since when the session knows a person. This is when the network first accepted a message to the
	// person, or when the person first wrote. Only the first note counts.
	NoteKnown(ctx context.Context, client ClientID, session SessionID, to string, at time.Time) error

	// MetSince returns the moments, after since, at which the session wrote to a person for the first time, the latest
	// first. It returns at most limit.
	MetSince(ctx context.Context, client ClientID, session SessionID, since time.Time, limit int) ([]time.Time, error)

	// SessionsThere returns which of the given sessions still exist.
	SessionsThere(ctx context.Context, sessions []SessionID) (map[SessionID]bool, error)
}
