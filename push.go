package puntuale

import (
	"context"
	"time"
)

// Push is a device that is told, by Web Push, that messages are due.
type Push struct {
	Client   ClientID
	Device   DeviceID
	Session  SessionID
	Target   []byte // where it wants to be told, sealed
	Failures int    // pushes that failed one after the other
}

// PushEvery is the shortest time between two pushes to a device.
const PushEvery = time.Minute

// PushEnd is how a push ended.
type PushEnd int8

const (
	PushArrived PushEnd = iota + 1
	PushGone            // the device wants to be told no more
	PushFailed
)

// PushStore is what telling devices of due messages needs.
type PushStore interface {
	// ClaimPushes picks at most so many devices that something came due for since they were told last, and that could take
	// it now. Each counts as told from then on: no node gets it again within PushEvery.
	ClaimPushes(ctx context.Context, now time.Time, most int) ([]Push, error)

	// EndPush records how a claimed push ended. PushGone forgets the target, unless there is a new one. After PushFailed the
	// device counts as not told, and is not claimed before again.
	EndPush(ctx context.Context, p Push, end PushEnd, again time.Time) error
}
