package puntuale

import (
	"context"
	"time"
)

// RestoreResult says what one client must decide after a restore. The zero value means that there is nothing to
// decide.
type RestoreResult struct {
	Since   time.Time // time of the backup: the store contains nothing that happened later
	At      time.Time // when the backup was restored
	Unknown int       // messages that may have left already, and that nobody has decided about yet
	Held    time.Time // since when the client is held: the client's messages leave only after a person releases the client; zero: not held
}

// RestoredClient is the RestoreResult of one client, for the operator.
type RestoredClient struct {
	Client  ClientID
	Partner PartnerID
	Name    string
	RestoreResult
}

// RestoreStore stores what people must decide after a restore.
type RestoreStore interface {
	Restored(ctx context.Context) (RestoreResult, error)

	// UnknownMessages lists the messages that may have left before the restore, sorted by id. They are PENDING, or
	// FAILED because nobody decided in time. Codes: invalid (the cursor).
	UnknownMessages(ctx context.Context, p Page) ([]MessageDetail, string, error)

	// CloseUnknown removes at most 1,000 messages from the list of UnknownMessages. The messages become or stay FAILED
	// with an uncertain outcome. The call counts once, and the cap never refuses it. The result has the ids that were
	// in the list.
	CloseUnknown(ctx context.Context, ids []MessageID, day Date, now time.Time) ([]MessageID, error)

	// Release ends the hold, so that the client's messages leave again. The call counts once, and the cap never
	// refuses it.
	Release(ctx context.Context, day Date) error
}
