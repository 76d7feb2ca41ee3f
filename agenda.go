package puntuale

import (
	"context"
	"time"
)

// AgendaStore shows a client the messages that left, the messages that are to leave, and the history of one message.
type AgendaStore interface {
	// Ended lists messages whose outcome was recorded from (inclusive) to (exclusive), newest first, at most limit. With failed, it lists
	// only messages that did not leave, and looks no further back than the last 5,000 outcomes.
	Ended(ctx context.Context, from, to time.Time, failed bool, limit int) ([]MessageDetail, error)

	// Upcoming lists PENDING messages whose next moment is between from (inclusive) and to (exclusive), soonest first, at most limit.
	Upcoming(ctx context.Context, from, to time.Time, limit int) ([]MessageDetail, error)

	// UpcomingCounts counts PENDING messages from (inclusive) to (exclusive) by quarter of an hour, soonest first. Quarters
	// without any are left out.
	UpcomingCounts(ctx context.Context, from, to time.Time) ([]QuarterCount, error)

	// CountMessages counts the messages that a filter finds, up to most, and reports whether that is all of them.
	CountMessages(ctx context.Context, f MessageFilter, most int) (n int, all bool, err error)

	// Version returns a text that changes when the lists of messages change. It is cheap enough for a call every second or two. It may miss
	// changes of messages that are neither new nor due.
	Version(ctx context.Context) (string, error)
}

// HistoryStore reads the history of one message.
type HistoryStore interface {
	// MessageEvents lists the events of a message that are not normal, oldest first, at most 200.
	MessageEvents(ctx context.Context, id MessageID) ([]MessageEvent, error)

	// ResentAs lists the new messages that replaced a message of a run when it was sent again, oldest first.
	ResentAs(ctx context.Context, run RunID, id MessageID) ([]MessageID, error)
}

// OutlookStore tells facts about pending messages that their state alone does not show.
type OutlookStore interface {
	// Uncertain lists the attempts whose outcome is uncertain, the latest first. It looks through at most 20,000 of the client's open
	// messages that are due, or whose next look is due, after a moment. It reports whether the list is complete.
	Uncertain(ctx context.Context, after time.Time) (found []UncertainAttempt, all bool, err error)

	// AmongBlacklisted returns the phones or marks, of those given, that the blacklist has as entries.
	AmongBlacklisted(ctx context.Context, words []string) ([]string, error)
}

// UncertainAttempt is an attempt that may have reached the network; see [Message.Uncertain].
type UncertainAttempt struct {
	ID   MessageID
	At   time.Time // of the attempt
	Next time.Time // when the dispatcher looks at it again
}

// QuarterCount is how many messages are to leave in a quarter of an hour.
type QuarterCount struct {
	Begin time.Time
	N     int
}

// MessageEvent is something about a message that is not normal: an attempt that did not succeed, a delivery receipt that came late.
type MessageEvent struct {
	At     time.Time
	Kind   string // retry, refused, uncertain, merge, late refused, ...
	Detail Reason // the connector's words
}
