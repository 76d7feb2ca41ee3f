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
	ID      SessionID
	Client  ClientID
	Name    string
	Type    ConnectionType
	Sandbox bool       // the simulated network takes its messages
	Default bool       // used by sequences that name none
	PerMin  int        // pace: messages a minute at most; 0: no pace
	Start   SequenceID // default sequence pair; 0: unset
	Stop    SequenceID
	Created time.Time
	Owner   NodeID // the node that sends for it; 0: none yet
	Link    Link   // how far it is from sending; left out where a sequence is read for a start
}
