package puntuale

import (
	"context"
	"time"
)

// RestoreResult is what one client must decide after a restore. The zero value: nothing.
type RestoreResult struct {
	Since   time.Time // the copy's moment: what happened later is not in it
	At      time.Time // when it was restored
	Unknown int       // messages that may have left already, about which nobody has decided yet
	Held    time.Time // since this moment no message of the client leaves, until a person releases it; zero: it is not held
}

// RestoredClient is Restored of one client, for the operator.
type RestoredClient struct {
	Client  ClientID
	Partner PartnerID
	Name    string
	RestoreResult
}

// RestoreStore keeps what a restore left to decide.
type RestoreStore interface {
	Restored(ctx context.Context) (RestoreResult, error)

	// UnknownMessages lists the messages that may have left before the restore, by rising id: PENDING ones, and those that
	// were FAILED meanwhile because nobody decided. Codes: invalid (the cursor).
	UnknownMessages(ctx context.Context, p Page) ([]MessageDetail, string, error)

	// CloseUnknown takes messages out of that list, at most 1,000: they stay FAILED with an uncertain outcome, or become
	// so. It counts one call, never refused. The answer names those that were in the list.
	CloseUnknown(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]MessageID, error)

	// Release lets the client's messages leave again. It counts one call, never refused.
	Release(ctx context.Context, day Date) error
}
