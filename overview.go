package puntuale

import (
	"context"
	"time"
)

// OverviewStore shows a partner how its clients are, without reading what they send.
type OverviewStore interface {
	// FindClients lists clients by name. Codes: invalid (the cursor).
	FindClients(ctx context.Context, f ClientFilter, p Page) ([]Client, string, error)

	// Pulses returns how the clients of the days are; those that are not the partner's are left out.
	Pulses(ctx context.Context, days []ClientDay) (map[ClientID]Pulse, error)

	// Expiring returns clients whose last day of service lies from one day to another, both inclusive, by day and name, at most limit.
	Expiring(ctx context.Context, from, to Date, limit int) ([]Client, error)

	// Totals returns what was sent and what failed on each of the days of a client, in its own zone, oldest first. It
	// also returns what is still to be sent. Client 0 stands for all of the partner's. Days without anything are left
	// out.
	Totals(ctx context.Context, client ClientID, from, to Date, now time.Time) ([]DayTotal, error)
}

// ClientFilter narrows a list of clients; zero values do not narrow.
type ClientFilter struct {
	Text  string // part of the name, the login or the phone, in any case of letters
	State ClientState
	Today Date // with StateExpired and StateExpiring
	Until Date // with StateExpiring
}

// ClientState is how a client is, as a list asks for it.
type ClientState string

const (
	StateActive    ClientState = "active"
	StateSuspended ClientState = "suspended"
	StateExpired   ClientState = "expired"  // its last day is past
	StateExpiring  ClientState = "expiring" // its last day is near
	StateEmpty     ClientState = "empty"    // no credits are left
)

// ClientDay is a client and its present day.
type ClientDay struct {
	Client ClientID
	Day    Date
}

// Pulse is how a client is at the moment.
type Pulse struct {
	Used     int64 // calls counted on the day
	Sessions int
	Online   int // of them, can send
	Pairing  int // of them, are being linked
}

// DayTotal is what became of messages on one day.
type DayTotal struct {
	Day     Date
	Sent    int64
	Failed  int64
	Pending int64 // due on this day, or on today and overdue
}
