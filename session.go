package puntuale

import (
	"context"
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
	Ways      WaySettings // only for a session of type Official
	Start     SequenceID  // the session's default sequences, for starts and for stops; 0: not set
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
	ColdPerMinute int // how many of the PerMinute messages may go to cold contacts
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
	Ways Change[WaySettings]
}

// DefaultPace returns the pace of a session whose caller gave none. A linked number gets a pace, because WhatsApp soon
// bans a number that writes to cold contacts as fast as a program can. Official sessions have none, because Meta has
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

// LinkState is the state of a session's link. The database contains the numbers.
type LinkState int8

const (
	LinkAsCreated LinkState = 0 // nobody has linked or unlinked the session yet; a sandbox then counts as online, any other session as unlinked
	LinkUnlinked  LinkState = 1
	LinkPairing   LinkState = 2
	LinkLinked    LinkState = 3 // linked, but not connected now
	LinkOnline    LinkState = 4 // connected: the session could send
)

var linkNames = [...]string{"as created", "unlinked", "pairing", "linked", "online"}

func (s LinkState) String() string {
	if s < 0 || int(s) >= len(linkNames) {
		return fmt.Sprintf("LinkState(%d)", int8(s))
	}
	return linkNames[s]
}

// Condition adds detail to a [LinkState]. The database contains the numbers.
type Condition int8

const (
	ConditionNone Condition = 0 // no detail
	Connecting    Condition = 1 // linked: a login is running, or about to begin
	Waiting       Condition = 2 // linked: the next login is at the time Link.Until
	Banned        Condition = 3 // linked: the network refuses logins until Link.Until
	Outdated      Condition = 4 // linked: the network wants a newer version of the protocol
	Replaced      Condition = 5 // linked: another connection took over the session; a person must decide
	LoggedOut     Condition = 6 // unlinked: the network, or the phone, ended the link
	NeedsPasskey  Condition = 7 // pairing: the phone asks for a passkey, and this server cannot give one
)

var conditionNames = [...]string{"", "connecting", "waiting", "banned", "outdated", "replaced", "logged_out", ""}

// Word returns the name of the state for callers. If the condition has its own name, this name replaces the state's
// name.
func (l Link) Word() string {
	if l.Condition > ConditionNone && int(l.Condition) < len(conditionNames) && conditionNames[l.Condition] != "" {
		return conditionNames[l.Condition]
	}
	return l.State.String()
}

// PairMethod is how a person links a phone.
type PairMethod string

const (
	PairQR   PairMethod = "qr"   // the phone scans a QR code
	PairCode PairMethod = "code" // the person types a code into the phone
)

// Link is the stored state of a session's link. The node that owns the session writes it. Any node may show it.
type Link struct {
	State  LinkState
	Since  time.Time // when this state, or the last pairing, began; zero: never changed since the session was created
	Number string    // "+…", or "" while the number is unknown or the session is unlinked
	Detail Reason    // why the link ended or is not connected; zero if the state needs no reason
	Code   string    // while pairing: a sealed [PairingCode]; these bytes are not text
	Until  time.Time // when Code expires, or when the condition Waiting or Banned ends
	Condition
	Limited time.Time // until this time the session sends nothing to cold contacts; zero: no limit
	// PageUntil is when the session's [LinkingPage] ends; zero: it has none, or the page was used. The owner does not write it.
	PageUntil time.Time
	// Restricted is true if the network refuses everything that the number sends, although State is LinkLinked. The
	// server informs the client, and does not store this flag.
	Restricted bool
}

// LinkOf returns the state of the session's link. For LinkAsCreated, it returns online for a sandbox and unlinked for
// any other session.
func (s Session) LinkOf() LinkState {
	switch {
	case s.Link.State != LinkAsCreated:
		return s.Link.State
	case s.Sandbox:
		return LinkOnline
	}
	return LinkUnlinked
}

// PairingCode is what a person scans or types to link a session.
type PairingCode struct {
	Method PairMethod `json:"method"`
	Text   string     `json:"text"`
}

// LinkingPage is a page with which somebody who has no account links a session's number, once. Whoever knows its address
// may open it.
type LinkingPage struct {
	Client  ClientID
	Session SessionID
	Mark    string    // keyed hash of the code in the address
	Until   time.Time // when it ends; zero: the number was linked, so the page was used
	Starts  int       // how often it began to link
}

// MaxPageStarts is how often one linking page may begin to link, because networks count attempts, and a phone shows an
// alert about each.
const MaxPageStarts = 20

// Linker is a [Connector] whose sessions people link to a number and unlink. For one session, the caller makes one call
// at a time. Calls for different sessions may run at the same time.
//
// A Linker reports each change of a session as a [LinkReport]. The constructor of the Linker gets a function for these
// reports. Reports may begin before Open returns, and end when Close returns. The function never blocks, any goroutine
// may call it, and it stores the report as soon as it can.
type Linker interface {
	// Open begins the work for a session that this node owns from now on, and connects the session if it is linked.
	// Open returns immediately, because the dispatcher waits for it. s.Link is the stored link. If the connector's own
	// keys show another state, the Linker reports that state. A pairing that another node began does not continue on
	// this node. Before Open, and after Close, the session is not Online.
	Open(s Session)

	// Close stops all work for a session, so that another node may open it. After Close returns, the Linker sends and
	// reports nothing for the session. The session stays linked. When ctx ends, Close aborts the remaining work.
	Close(ctx context.Context, session SessionID)

	// Pair begins to link a session with a phone. If a pairing is running, Pair starts it anew. The argument phone is
	// "+…" with PairCode, and "" otherwise. Each code comes as a report; the first may come before Pair returns or soon
	// after. The last report is LinkOnline or LinkLinked with the number, or LinkUnlinked with a Detail if the pairing
	// failed. If Pair returns an [*Error], show it to the caller.
	Pair(ctx context.Context, session SessionID, method PairMethod, phone string) error

	// Unlink ends a link or a pairing, and deletes its data. It informs the network, if that is possible before ctx
	// ends. If Unlink returns nil, the link has ended, even if the network was not informed. The caller may repeat
	// Unlink. Unlink itself reports nothing.
	Unlink(ctx context.Context, session SessionID) error
}

// Tester is a [Linker] that can find out why a session does not send.
type Tester interface {
	// Test reads the session's keys again, asks the network, and reports the result before it returns. The report
	// says LinkOnline, or another state with a Detail that explains it. If the test finds no problem, a session that
	// had stopped sends again. An error means that the test itself failed.
	Test(ctx context.Context, session SessionID) error
}

// LinkReport is a connector's report about the link of a session.
type LinkReport struct {
	Session SessionID
	State   LinkState // never LinkAsCreated
	Number  string
	Detail  Reason
	Code    PairingCode // only with LinkPairing; without a text, there is no code to show now
	Until   time.Time   // when Code expires, or when Condition ends
	Condition
	Limited    time.Time // see [Link.Limited]
	Restricted bool      // see [Link.Restricted]
}

// Equal reports whether two reports have the same content.
func (r LinkReport) Equal(o LinkReport) bool {
	return r.Session == o.Session && r.State == o.State && r.Number == o.Number && r.Detail.Equal(o.Detail) && r.Code == o.Code &&
		r.Until.Equal(o.Until) && r.Condition == o.Condition && r.Limited.Equal(o.Limited) && r.Restricted == o.Restricted
}

// Reconnector is a [Linker] that, in some conditions, connects a session again only when a person asks.
type Reconnector interface {
	// Reconnect connects a linked session immediately, even if its condition is Waiting or Replaced. Codes: conflict
	// (the session is not linked, or the network refuses logins until a later time).
	Reconnect(ctx context.Context, session SessionID) error
}

// Pacer is a [Linker] that enforces a part of a session's pace itself.
type Pacer interface {
	// SetPace gives the connector the new pace of an open session. It never blocks.
	SetPace(session SessionID, p Pace)
}

// NoLinker returns the error for a session that this build has no Linker for.
func NoLinker() *Error {
	return Conflict(FaultSessionNoLinker)
}

// AlreadyLinked returns the error for a session that is already linked.
func AlreadyLinked() *Error { return Conflict(FaultSessionLinkedAlready) }
