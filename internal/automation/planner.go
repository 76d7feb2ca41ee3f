package automation

import (
	"context"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Planner plans the runs and messages of one client's rules, in the same way as calls that start runs.
type Planner interface {
	Sequence(ctx context.Context, id puntuale.SequenceID) (Plan, error) // codes: not_found
	// Send returns the plan of a send action. Session 0 means the client's default session. Codes: not_found.
	Send(ctx context.Context, session puntuale.SessionID, a puntuale.Action) (Plan, error)
	// DefaultPair returns the default start and stop sequences of a session; 0 means none. Session 0 means the client's default session.
	DefaultPair(ctx context.Context, session puntuale.SessionID) (start, stop puntuale.SequenceID, err error)
	// Booking plans a change of a booking. Of its result, a trial needs the change; the store decides again. Codes: invalid;
	// not_found, if there is no such booking or its sequence was deleted; conflict, if the booking has another sequence.
	Booking(ctx context.Context, o BookingOrder) (puntuale.PutBooking, puntuale.BookingChange, error)
	Mark(phone string) string // the keyed hash by which the blacklist stores the phone
	Zone() (*time.Location, error)
	Closed() []puntuale.Date
}

// Plan plans runs of one sequence, or single sends with one content.
type Plan interface {
	Plan(r Recipient) (puntuale.StartRun, error) // codes: invalid
	Steps() []puntuale.Step
	Fields() []puntuale.Field
}

// Recipient is the person of one run, with the values and times for its plan.
type Recipient struct {
	Phone   string
	Fields  map[string]plan.Value
	Name    string // the rule's name
	Depth   int
	Request []byte
	Now     time.Time
	AsOf    time.Time // the time from which the run is planned; after an outage, this time is before Now
	Seed    uint64
}

// BookingOrder is a change of a booking that a rule wants.
type BookingOrder struct {
	Cancel    bool   // the booking is cancelled, and nothing else changes
	Told      bool   // the values are those of a preset: Status is that of the program, and the next members are set
	Former    string // the reference of the booking before it was moved
	Moved     bool   // the booking goes on under another reference
	Date      string // the main date
	Zone      string
	Reference string // "": a new booking, unless it is cancelled
	Sequence  puntuale.SequenceID
	Phone     string
	Status    string
	AsOf      string
	Silent    bool
	Fields    func([]puntuale.Field) (given, missing map[string]plan.Value) // missing: values for fields that the booking lacks
	Name      string                                                        // the rule's name
	Depth     int
	Request   func(values map[string]plan.Value) []byte
	Dry       bool
}

// fields returns the person's values of the wanted fields. A field without a value is left out.
func fields(o Occasion, c *puntuale.Contact, wanted []puntuale.Field) map[string]plan.Value {
	all := make(map[string]plan.Value, len(wanted))
	for _, w := range wanted {
		if value, kind := fieldOf(w.Name, o, c); value != "" {
			all[w.Name] = plan.Value{Kind: plan.Text, Text: puntuale.ContactField{Kind: kind, Value: value}.Text()}
		}
	}
	return all
}

// texts returns the values as the texts that a run's stored request contains.
func texts(values map[string]plan.Value) map[string]string {
	all := make(map[string]string, len(values))
	for name, v := range values {
		all[name] = v.Text
	}
	return all
}
