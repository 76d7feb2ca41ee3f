package puntuale

import (
	"context"
	"time"
)

// Way says how a session reaches the network, where one type has several ways.
type Way string

// WayDevice is the way of a Send_app session whose messages devices take: people's phones, or programs. All other
// sessions have the way "": their connector sends.
const WayDevice Way = "device"

// ByDevice reports whether devices take the session's messages.
func (s Session) ByDevice() bool { return s.Way == WayDevice && !s.Sandbox }

// DeviceID names a device among all.
type DeviceID int64

// Device is a phone or a program that takes the messages of one session.
type Device struct {
	ID       DeviceID
	Client   ClientID
	Session  SessionID
	Name     string
	Dedupes  bool // it sends a message once, even if it takes the message several times
	Assisted bool // a person declares the outcome of each message
	Linked   time.Time
	Seen     time.Time // when it last called
	Pushed   bool      // it wants pushes about due messages
	Held     int       // messages that it took and has not reported; filled in by Devices only
}

// Limits of devices.
const (
	MaxDevices     = 20  // of a session
	MaxDeviceName  = 100 // characters
	MaxTaken       = 100 // messages of one take
	MaxTakeID      = 64  // characters
	MaxReported    = 100 // messages of one report
	MinLease       = 10 * time.Second
	DefaultLease   = 2 * time.Minute
	MaxLease       = time.Hour
	DeviceCodeTime = 10 * time.Minute // how long a linking code is valid
)

// DeviceToken is a bit that is set in the tokens of devices' attempts. A node's tokens begin with the node's number, which never has this
// bit.
const DeviceToken = 1 << 62

// HeldMessage is a message that a device took and has not reported.
type HeldMessage struct {
	DueMessage // the row as stored: Intent is the attempt's token
	Content    Content
	Until      time.Time // of the hold
}

// DeviceTake asks for messages on behalf of a device.
type DeviceTake struct {
	Device  DeviceID
	Session SessionID
	ID      string    // the device's own id for this call; a repeat returns those messages that are still held
	Message MessageID // 0: the first that are due
	Most    int
	Until   time.Time // of the hold
	GiveUp  time.Time // when to give up an attempt that begins now and gets no answer
	Now     time.Time
	Mark    func(phone string) string // a phone's mark; see [BlacklistEntry]
}

// HeldRef names an attempt of a device.
type HeldRef struct {
	Message MessageID
	Token   int64
}

// DeviceReport is what a device tells of an attempt.
type DeviceReport struct {
	HeldRef
	Outcome  Outcome
	Returned bool // the device did not show the message: Outcome is Retry, and the hold must not have ended
}

// ReportResult is the result of a report.
type ReportResult string

const (
	ReportRecorded ReportResult = "recorded"
	ReportKnown    ReportResult = "known" // it was reported before
	ReportLate     ReportResult = "late"  // the outcome was already decided, or there is no such attempt
)

// DeviceTenant keeps the devices of a client's sessions. It is part of a [Tenant].
type DeviceTenant interface {
	// OfferDevice replaces the code that links a device to the session. mark is the keyed hash of the code. Codes: not_found, conflict (the
	// session has as many devices as it may).
	OfferDevice(ctx context.Context, session SessionID, sealed []byte, mark string, until time.Time) error

	// Devices lists the session's devices, by id.
	Devices(ctx context.Context, session SessionID) ([]Device, error)

	// UnlinkDevices unlinks one device, or with device 0 all devices of the session, and ends the offered code. Messages that they hold are
	// uncertain from then on. Codes: not_found (the session, or the device).
	UnlinkDevices(ctx context.Context, session SessionID, device DeviceID, now time.Time) error
}

// DeviceQueue is the part of the store that one device uses. It is part of a [Tenant].
type DeviceQueue interface {
	// Takeable lists what the device could take at a moment, in order, at most so many. It does not look at the pace.
	Takeable(ctx context.Context, session SessionID, device DeviceID, now time.Time, most int) ([]HeldMessage, error)

	// HeldBy lists what the device took and has not reported, by the end of the hold. That end may be past.
	HeldBy(ctx context.Context, session SessionID, device DeviceID) ([]HeldMessage, error)

	// Take begins attempts: intents, credits and holds are in one transaction. No two devices get the same message. Codes:
	// not_found (the device was unlinked), conflict (take.Message cannot be taken now), unavailable (after a failover).
	Take(ctx context.Context, take DeviceTake) ([]HeldMessage, error)

	// Renew moves the end of the device's holds that have not ended, and returns these holds.
	Renew(ctx context.Context, session SessionID, device DeviceID, held []HeldRef, until, now time.Time) ([]HeldRef, error)

	// Report records the outcomes of the device's attempts. Its answers have the order of the reports.
	Report(ctx context.Context, session SessionID, device DeviceID, reports []DeviceReport, now time.Time) ([]ReportResult, error)

	// SeenDevice notes that the device called.
	SeenDevice(ctx context.Context, device DeviceID, now time.Time) error

	// KeepPush replaces the sealed address to which pushes for the device go. nil: the device wants none. Codes: not_found.
	KeepPush(ctx context.Context, device DeviceID, sealed []byte) error
}

// DeviceLogin links devices and authenticates them.
type DeviceLogin interface {
	// LinkDevice adds a device to the session whose code has the mark, and ends the code. token is the hash of the token that the device
	// will send. Codes: not_found (no such code, or it is over), conflict (the session has as many devices as it may).
	LinkDevice(ctx context.Context, mark string, d Device, token KeyHash, now time.Time) (Device, error)

	// DeviceOf finds the device that has a token, and its client. Codes: unauthorized.
	DeviceOf(ctx context.Context, token KeyHash) (Client, Device, error)
}

// Push is a device that gets a Web Push because messages are due.
type Push struct {
	Client   ClientID
	Device   DeviceID
	Session  SessionID
	Target   []byte // the sealed address for pushes
	Failures int    // pushes that failed one after the other
}

// PushEvery is the shortest time between two pushes to a device.
const PushEvery = time.Minute

// PushOutcome is how a push ended.
type PushOutcome int8

const (
	PushArrived      PushOutcome = iota + 1
	PushUnsubscribed             // the device wants no more pushes
	PushFailed
)

// PushStore is the part of the store that tells devices of due messages.
type PushStore interface {
	// ClaimPushes picks at most so many devices. For each, a message came due since the last push, and the device could
	// take it now. Each picked device counts as notified: no node picks it again within PushEvery.
	ClaimPushes(ctx context.Context, now time.Time, most int) ([]Push, error)

	// EndPush records how a claimed push ended. PushUnsubscribed forgets the target, unless there is a new one. After
	// PushFailed the device counts as not notified, and is not claimed before again.
	EndPush(ctx context.Context, p Push, end PushOutcome, again time.Time) error
}
