package push

import (
	"context"
	"time"

	"puntuale"
)

// Store has the methods that the sender of pushes uses.
type Store interface {
	// ClaimPushes picks at most limit devices. A message of each such device came due since the last push, and the
	// device could take a message now. After a device was picked, no node picks it again within [puntuale.PushEvery].
	ClaimPushes(ctx context.Context, now time.Time, limit int) ([]puntuale.Push, error)

	// EndPush records how a claimed push ended. After PushUnsubscribed, the store deletes the address, unless the
	// device has given a new address. After PushFailed, the push counts as not sent. ClaimPushes may pick the device
	// again from the time retryAt on.
	EndPush(ctx context.Context, p puntuale.Push, end puntuale.PushOutcome, retryAt time.Time) error
}
