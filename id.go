package puntuale

import (
	"fmt"
	"strconv"
)

// An identifier is positive. No two things of the same kind have the same identifier, even in different tenants. The
// ids of messages and runs come from one counter that grows with time. Identifiers are at most [MaxID], so that a JSON
// number is exact. Identifiers do not reveal how many messages there are.
type (
	PartnerID  int64
	ClientID   int64
	SessionID  int64
	SequenceID int64
	KeyID      int64
	TemplateID int64
	CampaignID int64
	ListID     int64 // a list of recipients
	PlanID     int64 // a plan of a partner

	// RunID equals the MessageID of the run's first message. The ids of the run's other planned messages follow without
	// gaps. A resend makes a new message, whose id is not one of these.
	RunID     int64
	MessageID int64

	// NodeID names one process that dispatches. Each start of a process gets a new NodeID, which is never used again.
	NodeID int64
)

func (id ClientID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id SessionID) String() string  { return strconv.FormatInt(int64(id), 10) }
func (id SequenceID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id TemplateID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id CampaignID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id PlanID) String() string     { return strconv.FormatInt(int64(id), 10) }
func (id KeyID) String() string      { return strconv.FormatInt(int64(id), 10) }
func (id MessageID) String() string  { return strconv.FormatInt(int64(id), 10) }

// IDEpoch is 2026-01-01T00:00:00Z, in microseconds of the Unix epoch. A new MessageID is at least the number of
// microseconds since then. It may be a little ahead of the clock.
const IDEpoch = 1767225600000000

// MaxID is the largest identifier. Every JSON reader reads numbers up to this value exactly.
const MaxID = 1<<53 - 1

// ParseID reads an identifier in the form of the wire: decimal digits for 1 to [MaxID], no sign, no leading zero.
func ParseID[T ~int64](text string) (T, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > MaxID || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%q is not an identifier", text)
	}
	return T(n), nil
}

// MessageRef names a message in the same way as the keys of the tables do: the tenant comes first.
type MessageRef struct {
	Client ClientID
	ID     MessageID
}

// RunRef names a run; the tenant comes first.
type RunRef struct {
	Client ClientID
	ID     RunID
}

// NamedKind is a kind of thing that people find by its name; see [NamedItem].
type NamedKind string

const (
	NamedSequence NamedKind = "sequences"
	NamedCampaign NamedKind = "campaigns"
	NamedTemplate NamedKind = "templates"
)

// NamedItem is a thing that was found by its name.
type NamedItem struct {
	ID   int64
	Name string
}
