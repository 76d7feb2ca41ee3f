package puntuale

import (
	"fmt"
	"strconv"
)

// Identifiers are positive and unique within their noun across all tenants. Messages and runs take theirs from one
// counter that grows with time. They stay below 2^53, so that a JSON number is exact. They do not reveal how many
// messages there are.
type (
	PartnerID  int64
	ClientID   int64
	SessionID  int64
	SequenceID int64
	KeyID      int64
	TemplateID int64
	CampaignID int64
	ListID     int64 // of recipients

	// RunID equals the MessageID of the run's first message; the ids of the run's planned messages follow it without
	// gaps. Messages that were sent again have other numbers.
	RunID     int64
	MessageID int64

	// NodeID names one incarnation of a process that dispatches. Each start gets a new id, which is never used again.
	NodeID int64
)

func (id ClientID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id SessionID) String() string  { return strconv.FormatInt(int64(id), 10) }
func (id SequenceID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id TemplateID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id CampaignID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id KeyID) String() string      { return strconv.FormatInt(int64(id), 10) }
func (id MessageID) String() string  { return strconv.FormatInt(int64(id), 10) }

// MaxID is the largest identifier that every JSON reader keeps exactly.
const MaxID = 1<<53 - 1

// ParseID reads an identifier as the wire shows it: decimal digits, no sign, no leading zero, 1 to [MaxID].
func ParseID[T ~int64](text string) (T, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > MaxID || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%q is not an identifier", text)
	}
	return T(n), nil
}

// MessageRef names a message the way every key and statement does: with the tenant first.
type MessageRef struct {
	Client ClientID
	ID     MessageID
}

// RunRef names a run, by tenant first.
type RunRef struct {
	Client ClientID
	ID     RunID
}
