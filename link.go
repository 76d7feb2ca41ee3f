package puntuale

import (
	"context"
	"fmt"
	"time"
)

// LinkState is the state of a session's link. The numbers are what stores keep.
type LinkState int8

const (
	LinkAsCreated LinkState = 0 // nobody has linked or unlinked it: a sandbox is online, a real number unlinked
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
	ConditionNone Condition = 0 // the state says it all
	Connecting    Condition = 1 // linked: a login is under way, or about to begin
	Waiting       Condition = 2 // linked: the next login is at Link.Until
	Banned        Condition = 3 // linked: the network lets nobody in before Link.Until
	Outdated      Condition = 4 // linked: the network wants a later version of the protocol
	Replaced      Condition = 5 // linked: another connection took the session's place; a person decides
	LoggedOut     Condition = 6 // unlinked: the network, or the phone, ended the link
	NeedsPasskey  Condition = 7 // pairing: the phone asks for a passkey, which cannot be given here
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
	Since  time.Time // of this state, or when its pairing was begun last; zero as created
	Number string    // "+…", once it is known; "" while unlinked
	Detail Reason    // where the state needs one: why the link ended, why it is not connected
	Code   string    // while pairing: a sealed [PairingCode], bytes that are no text
	Until  time.Time // after which Code is worth nothing; of Waiting and Banned: their end
	Condition
	Limited time.Time // until then only those are written to who know the number already; zero: everybody
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

// Linker is what a [Connector] also is whose sessions are linked to a number and unlinked by the people they belong to. Calls about
// one session come one at a time; those about others come meanwhile.
//
// It tells what becomes of a session by a function that it gets when it is made. Each change is a [LinkReport], from
// Open's return (or before) until Close's. That function never blocks, may be called by any goroutine, and stores what
// it is told when it can.
type Linker interface {
	// Open takes charge of a session that this node owns from now on, and connects it if it is linked. It returns at once, because the
	// dispatcher waits for it. s.Link is what was stored last; if the connector's own keys say something else, it reports that. A pairing
	// that another node had begun is over. Before Open, and after Close, the session is not Online.
	Open(s Session)

	// Close lets a session go, so that another node may open it: when it returns, nothing is sent or reported for it any
	// more. It stays linked. Once ctx ends, whatever is left is cut off.
	Close(ctx context.Context, session SessionID)

	// Pair begins to link a session with a phone, and begins anew if a pairing is already under way. phone is "+…" with PairCode, else "".
	// The first code comes as a report, soon after or before Pair returns, and so does each later one. Then comes LinkOnline or LinkLinked
	// with the number, or LinkUnlinked with a Detail when the pairing failed. An [*Error] that it returns is for the caller.
	Pair(ctx context.Context, session SessionID, method PairMethod, phone string) error

	// Unlink ends a link, or a pairing, and forgets what belonged to it. The network is told if it can be reached before
	// ctx ends; the link is over in any case once Unlink returned nil. It may be repeated, and reports nothing itself.
	Unlink(ctx context.Context, session SessionID) error
}

// Tester is a [Linker] that can find out what keeps a session from sending.
type Tester interface {
	// Test reads anew what the session needs, asks the network, and reports what came of it before it returns. It reports LinkOnline, or a
	// lesser state with a Detail that says why. A session that was held back goes on if nothing is wrong any more. An error means that the
	// test itself failed.
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

// Pacer is a [Linker] that itself keeps a part of a session's pace.
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
