package puntuale

import (
	"context"
	"fmt"
	"time"
)

// LinkState is the state of a session's link. The numbers are what stores keep.
type LinkState int8

const (
	LinkAsCreated LinkState = 0 // it was never linked or unlinked: a sandbox is online, any other session unlinked
	LinkUnlinked  LinkState = 1
	LinkPairing   LinkState = 2
	LinkLinked    LinkState = 3 // linked, but not connected now
	LinkOnline    LinkState = 4 // it could send
)

var linkNames = [...]string{"as created", "unlinked", "pairing", "linked", "online"}

func (s LinkState) String() string {
	if s < 0 || int(s) >= len(linkNames) {
		return fmt.Sprintf("LinkState(%d)", int8(s))
	}
	return linkNames[s]
}

// Condition tells more about a [LinkState]. The numbers are what stores keep.
type Condition int8

const (
	ConditionNone Condition = 0 // there is no further condition
	Connecting    Condition = 1 // linked: a login is under way, or about to begin
	Waiting       Condition = 2 // linked: the next login is at Link.Until
	Banned        Condition = 3 // linked: the network refuses logins before Link.Until
	Outdated      Condition = 4 // linked: the network wants a later version of the protocol
	Replaced      Condition = 5 // linked: another connection took the session's place; a person decides
	LoggedOut     Condition = 6 // unlinked: the network, or the phone, ended the link
	NeedsPasskey  Condition = 7 // pairing: the phone asks for a passkey, which this server cannot give
)

var conditionNames = [...]string{"", "connecting", "waiting", "banned", "outdated", "replaced", "logged_out", ""}

// Word names a state to callers.
func (l Link) Word() string {
	if l.Condition > ConditionNone && int(l.Condition) < len(conditionNames) && conditionNames[l.Condition] != "" {
		return conditionNames[l.Condition]
	}
	return l.State.String()
}

// PairMethod is how a person links a phone: the phone scans a QR code, or the person types a code into it.
type PairMethod string

const (
	PairQR   PairMethod = "qr"   // the phone scans a picture of the code's text
	PairCode PairMethod = "code" // a person types the code into the phone
)

// Link is what a store keeps of a session's link. The node that owns the session writes it; any node shows it.
type Link struct {
	State  LinkState
	Since  time.Time // when this state began, or when the pairing last began; zero: as created
	Number string    // "+…", once it is known; "" while unlinked
	Detail Reason    // why the link ended, or why it is not connected; zero if the state needs no reason
	Code   string    // while pairing: a sealed [PairingCode], bytes that are no text
	Until  time.Time // the end of Code, or of the conditions Waiting and Banned
	Condition
	Limited time.Time // until then the session sends nothing to cold contacts; zero: no limit
}

// LinkOf returns the session's link state. For a session that nobody has linked or unlinked, the state depends on the session's kind.
func (s Session) LinkOf() LinkState {
	switch {
	case s.Link.State != LinkAsCreated:
		return s.Link.State
	case s.Sandbox:
		return LinkOnline
	}
	return LinkUnlinked
}

// PairingCode is what a person scans or types while a session is being linked.
type PairingCode struct {
	Method PairMethod `json:"method"`
	Text   string     `json:"text"`
}

// Linker is a [Connector] whose sessions people link to a number and unlink. Calls about one session come one at a
// time. Calls about different sessions may come at once.
//
// It reports each change of a session as a [LinkReport], to a function that its constructor got. Reports may begin
// before Open returns, and end when Close returns. The function never blocks, and any goroutine may call it. It stores
// the report when it can.
type Linker interface {
	// Open takes charge of a session that this node owns from now on, and connects it if it is linked. It returns at once, because the
	// dispatcher waits for it. s.Link is what was stored last; if the connector's own keys say something else, it reports that. A pairing
	// that another node had begun is over. Before Open, and after Close, the session is not Online.
	Open(s Session)

	// Close lets a session go, so that another node may open it: when it returns, nothing is sent or reported for it
	// any more. It stays linked. Once ctx ends, all remaining work is cut off.
	Close(ctx context.Context, session SessionID)

	// Pair begins to link a session with a phone, and begins anew if a pairing is already under way. phone is "+…" with PairCode, else "".
	// The first code comes as a report, soon after or before Pair returns, and so does each later one. Then comes LinkOnline or LinkLinked
	// with the number, or LinkUnlinked with a Detail when the pairing failed. An [*Error] that it returns is for the caller.
	Pair(ctx context.Context, session SessionID, method PairMethod, phone string) error

	// Unlink ends a link, or a pairing, and removes its data. It tells the network if that is possible before ctx ends.
	// Once Unlink returned nil, the link is over in any case. It may be repeated, and reports nothing itself.
	Unlink(ctx context.Context, session SessionID) error
}

// Tester is a [Linker] that can find out what keeps a session from sending.
type Tester interface {
	// Test reads the session's keys again, asks the network, and reports the result before it returns. It reports
	// LinkOnline, or a lesser state with a Detail that says why. If the test finds no problem, a session that had
	// stopped sends again. An error means that the test itself failed.
	Test(ctx context.Context, session SessionID) error
}

// LinkReport is what a connector tells of a session.
type LinkReport struct {
	Session SessionID
	State   LinkState // never LinkAsCreated
	Number  string
	Detail  Reason
	Code    PairingCode // with LinkPairing; without text: none can be shown now
	Until   time.Time   // of Code, or of Condition
	Condition
	Limited time.Time // as Link.Limited
}

// Equal reports whether two reports say the same.
func (r LinkReport) Equal(o LinkReport) bool {
	return r.Session == o.Session && r.State == o.State && r.Number == o.Number && r.Detail.Equal(o.Detail) && r.Code == o.Code &&
		r.Until.Equal(o.Until) && r.Condition == o.Condition && r.Limited.Equal(o.Limited)
}

// Reconnector is a [Linker] that makes some connections again only when a person asks.
type Reconnector interface {
	// Reconnect connects a linked session at once, also one that waits, or was replaced. Codes: conflict (it is not linked;
	// the network does not let it in before some moment).
	Reconnect(ctx context.Context, session SessionID) error
}

// Pacer is a [Linker] that applies a part of a session's pace itself.
type Pacer interface {
	// SetPace tells the connector that the pace of an open session changed. It never blocks.
	SetPace(session SessionID, p Pace)
}

// NoLinker refuses to link a session for which there is no connector in this build.
func NoLinker() *Error {
	return Conflict(FaultSessionNoLinker)
}

// AlreadyLinked refuses to link a session twice.
func AlreadyLinked() *Error { return Conflict(FaultSessionLinkedAlready) }
