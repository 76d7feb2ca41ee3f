package puntuale

import (
	"context"
	"time"
)

// Way says how a session reaches its network, if sessions of its type have several ways.
type Way string

// WayDevice means that devices take and send the session's messages. Devices are people's phones, or programs. Only a
// session of type Send_app may have this way. All other sessions have the way "", which means that the server's
// connector sends.
const WayDevice Way = "device"

// ByDevice reports whether devices take the session's messages.
func (s Session) ByDevice() bool { return s.Way == WayDevice && !s.Sandbox }

// DeviceID names a device. No two devices of any client have the same id.
type DeviceID int64

// Device is a phone or a program that takes the messages of one session.
type Device struct {
	ID       DeviceID
	Client   ClientID
	Session  SessionID
	Name     string
	Dedupes  bool // the device sends a message only once, even if it takes the message several times
	Assisted bool // a person declares the outcome of each message
	Linked   time.Time
	Seen     time.Time // when the device last called
	Pushed   bool      // the device wants pushes about due messages
	Held     int       // messages that the device took and has not reported; only the method Devices fills it in
}

// Limits of devices.
const (
	MaxDevices     = 20  // devices of one session
	MaxDeviceName  = 100 // characters
	MaxTaken       = 100 // the most messages that a device gets in one call
	MaxTakeID      = 64  // characters
	MaxReported    = 100 // messages in one report
	MinLease       = 10 * time.Second
	DefaultLease   = 2 * time.Minute
	MaxLease       = time.Hour
	DeviceCodeTime = 10 * time.Minute // how long a linking code is valid
)

// DeviceToken is a bit that is set only in the tokens of devices' attempts. The tokens of nodes never have this bit,
// because they begin with the number of the node.
const DeviceToken = 1 << 62

// HeldMessage is a message that a device took and has not reported.
type HeldMessage struct {
	DueMessage // the row as stored: its Intent is the token of the attempt
	Content    Content
	Until      time.Time // end of the hold
}

// DeviceTake is a device's request for messages.
type DeviceTake struct {
	Device  DeviceID
	Session SessionID
	// ID is the device's own id of this call. If the device repeats the call, it gets those messages of the first call
	// that it still holds.
	ID      string
	Message MessageID // take only this message; 0: take the first due messages
	Most    int
	Until   time.Time // end of the hold
	GiveUp  time.Time // when the server gives up an attempt that begins now and gets no answer
	Now     time.Time
	Mark    func(phone string) string // returns the mark of a phone; see [BlacklistEntry]
}

// HeldRef names an attempt of a device.
type HeldRef struct {
	Message MessageID
	Token   int64
}

// DeviceReport is a device's report about one attempt.
type DeviceReport struct {
	HeldRef
	Outcome  Outcome
	Returned bool // the device did not show the message; Outcome must be Retry, and the hold must not have ended
}

// ReportResult is the result of a report.
type ReportResult string

const (
	ReportRecorded ReportResult = "recorded"
	ReportKnown    ReportResult = "known" // the device had already reported the attempt
	ReportLate     ReportResult = "late"  // the outcome was decided before the report came, or there is no attempt with this token
)

// DeviceLogin links devices and authenticates them. It also finds the pages with which people link numbers.
type DeviceLogin interface {
	// LinkDevice adds a device to the session whose linking code has the mark, and deletes the code. The argument token
	// is the hash of the device's own token. Codes: not_found (no code has this mark, or the code expired), conflict
	// (the session has [MaxDevices] devices).
	LinkDevice(ctx context.Context, mark string, d Device, token KeyHash, now time.Time) (Device, error)

	// DeviceOf finds the device with a token, and the device's client. Codes: unauthorized.
	DeviceOf(ctx context.Context, token KeyHash) (Client, Device, error)

	// LinkingPage finds the page that has the mark, also if it was used or its time is over. Codes: not_found.
	LinkingPage(ctx context.Context, mark string) (LinkingPage, error)

	// StartLinkingPage counts one more start of the page. Codes: not_found (the page was used or replaced, or it ended
	// before now), conflict (it was started [MaxPageStarts] times).
	StartLinkingPage(ctx context.Context, p LinkingPage, now time.Time) error
}

// Push is a device that must get a Web Push, because messages are due.
type Push struct {
	Client   ClientID
	Device   DeviceID
	Session  SessionID
	Target   []byte // sealed address to which pushes for the device are sent
	Failures int    // how many pushes failed in a row
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
