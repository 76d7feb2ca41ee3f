package puntuale

import (
	"fmt"
	"time"
)

// ConnectionType is how a session reaches the network; it never changes.
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

// Session is one linked sender (a number) of a client.
type Session struct {
	ID        SessionID
	Client    ClientID
	Name      string
	Type      ConnectionType
	Way       Way
	Sandbox   bool // the simulated network takes its messages
	Default   bool // used by sequences that name none
	Pace      Pace
	Start     SequenceID // default sequence pair; 0: unset
	Stop      SequenceID
	Created   time.Time
	Owner     NodeID // the node that sends for it; 0: none yet
	Campaigns bool   // campaigns may have messages to send; set only for the owning node
	Link      Link   // the state of its link; not set when it was read for a start
}

// Pace bounds how much a session sends, so that it looks like a person's number. 0 sets no limit.
type Pace struct {
	PerMinute     int
	PerDay        int // in any 24 hours
	ColdPerMinute int // of these, to cold contacts
	ColdPerDay    int
	Jitter        int // in seconds: the largest random delay of each message
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

// DefaultPace is the pace of a session for which none was asked. WhatsApp soon bans a linked number that writes to cold contacts as fast as
// a program can. Official sessions have no pace, because Meta has its own limits. Sessions on people's phones have none either.
func (s Session) DefaultPace() Pace {
	switch {
	case s.Sandbox || s.Type == Official || s.Way == WayDevice:
		return Pace{}
	case s.Type == SendApp:
		return Pace{PerMinute: 20, Jitter: 3}
	}
	return Pace{PerMinute: 20, PerDay: 1000, ColdPerMinute: 3, ColdPerDay: 50, Jitter: 3}
}
