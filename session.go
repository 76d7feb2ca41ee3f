package puntuale

import (
	"fmt"
	"time"
)

// ConnectionType says through which kind of connector a session reaches its network. It never changes.
type ConnectionType string

const (
	Socket   ConnectionType = "Socket"
	SendApp  ConnectionType = "Send_app"
	Official ConnectionType = "Official"
)

// ParseConnectionType reads one of the contract's three words.
func ParseConnectionType(word string) (ConnectionType, error) {
	switch t := ConnectionType(word); t {
	case Socket, SendApp, Official:
		return t, nil
	}
	return "", fmt.Errorf("%q is not one of Socket, Send_app, Official", word)
}

// Session is a client's way to send: one number at one connector.
type Session struct {
	ID        SessionID
	Client    ClientID
	Name      string
	Type      ConnectionType
	Way       Way
	Sandbox   bool // the simulated network receives the messages; no real network does
	Default   bool // the client's default session; sequences that name no session use it
	Pace      Pace
	Start     SequenceID // the session's default sequences, for starts and for stops; 0: not set
	Stop      SequenceID
	Created   time.Time
	Owner     NodeID // node that sends for the session; 0: none yet
	Campaigns bool   // campaigns may have messages to send on this session; set only for the node that owns it
	Link      Link   // state of the session's link; not set if the session was read for a start
}

// Pace limits how much a session sends, so that its number behaves like a person's. 0 means no limit.
type Pace struct {
	PerMinute     int
	PerDay        int // messages in any 24 hours
	ColdPerMinute int // how many of these messages a minute may go to cold contacts
	ColdPerDay    int
	Jitter        int // largest random delay before each message, in seconds
}

// Limits of a pace.
const (
	MaxPerMinute = 6000
	MaxPerDay    = 1_000_000
	MaxPaceDelay = 600 // seconds
)

// SessionPatch changes a session; a field that is not set changes nothing.
type SessionPatch struct {
	Name Change[string]
	Pace Change[Pace]
}

// DefaultPace returns the pace of a session whose caller gave none. A linked number gets a pace, because WhatsApp
// soon bans one that writes to cold contacts as fast as a program can. Official sessions have none, because Meta has
// its own limits. Sandboxes, and sessions whose messages devices send, have none either.
func (s Session) DefaultPace() Pace {
	switch {
	case s.Sandbox || s.Type == Official || s.Way == WayDevice:
		return Pace{}
	case s.Type == SendApp:
		return Pace{PerMinute: 20, Jitter: 3}
	}
	return Pace{PerMinute: 20, PerDay: 1000, ColdPerMinute: 3, ColdPerDay: 50, Jitter: 3}
}
