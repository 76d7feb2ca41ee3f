package automation

import (
	"context"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Planner plans for one client, as its start calls are planned.
type Planner interface {
	Sequence(ctx context.Context, id puntuale.SequenceID) (Plan, error) // not_found
	// Send plans a send. Session 0 is the default one. Codes: not_found.
	Send(ctx context.Context, session puntuale.SessionID, a puntuale.Action) (Plan, error)
	// DefaultPair returns the default sequences of a session, 0 for none. Session 0 is the default one.
	DefaultPair(ctx context.Context, session puntuale.SessionID) (start, stop puntuale.SequenceID, err error)
	Mark(phone string) string // of the phone in the blacklist
	Zone() (*time.Location, error)
	Closed() []puntuale.Date
}

// Plan plans starts of one sequence, or one send.
type Plan interface {
	Plan(r Recipient) (puntuale.StartRun, error) // invalid
	Steps() []puntuale.Step
	Fields() []puntuale.Field
}

// Recipient is the person of a run, and the moment from which the run is planned.
type Recipient struct {
	Phone   string
	Fields  map[string]plan.Value
	Name    string // of the rule
	Depth   int
	Request []byte
	Now     time.Time
	AsOf    time.Time // the moment that steps are counted from; before Now after an outage
	Seed    uint64
}

// fields are the values for a person: a payload's, else the contact's. The name fills nome.
func fields(o Occasion, c *puntuale.Contact, wanted []puntuale.Field) map[string]plan.Value {
	all := make(map[string]plan.Value, len(wanted))
	for _, w := range wanted {
		if value, _ := fieldOf(w.Name, o, c); value != "" {
			all[w.Name] = plan.Value{Kind: plan.Text, Text: value}
		}
	}
	return all
}

// texts are the values as the details of a message show them.
func texts(values map[string]plan.Value) map[string]string {
	all := make(map[string]string, len(values))
	for name, v := range values {
		all[name] = v.Text
	}
	return all
}
