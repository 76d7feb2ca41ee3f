package puntuale

import (
	"context"
	"time"
)

// AgendaStore shows a client the messages that left, the messages that are to leave, and the history of one message.
type AgendaStore interface {
	// Ended lists at most limit messages whose outcome was recorded between from (inclusive) and to (exclusive),
	// newest first. With failed, it lists only messages that did not leave, and searches only the latest 5,000
	// outcomes.
	Ended(ctx context.Context, from, to time.Time, failed bool, limit int) ([]MessageDetail, error)

	// Upcoming lists at most limit PENDING messages whose next moment is between from (inclusive) and to (exclusive),
	// soonest first.
	Upcoming(ctx context.Context, from, to time.Time, limit int) ([]MessageDetail, error)

	// UpcomingCounts counts, for each quarter of an hour, the PENDING messages between from (inclusive) and to
	// (exclusive). Quarters come soonest first. Quarters without messages are left out.
	UpcomingCounts(ctx context.Context, from, to time.Time) ([]QuarterCount, error)

	// CountMessages counts the messages that match the filter, and stops counting at most. all reports whether n is
	// the full count.
	CountMessages(ctx context.Context, f MessageFilter, maximum int) (n int, all bool, err error)

	// Version returns a text that changes when the lists of messages change. A page may call it every second or two,
	// because it is cheap. It may miss changes of messages that are neither new nor due.
	Version(ctx context.Context) (string, error)
}

// HistoryStore reads the history of one message.
type HistoryStore interface {
	// MessageEvents lists at most 200 unusual events of a message, oldest first.
	MessageEvents(ctx context.Context, id MessageID) ([]MessageEvent, error)

	// ResentAs lists the messages that replaced a message of the run when somebody sent it again, oldest first.
	ResentAs(ctx context.Context, run RunID, id MessageID) ([]MessageID, error)
}

// OutlookStore tells facts about pending messages that the messages' state alone does not show.
type OutlookStore interface {
	// Uncertain lists the attempts whose outcome is uncertain, the latest first. It reads at most 20,000 open
	// messages of the client, only those whose next moment is later than the argument after. all reports whether the
	// list is complete.
	Uncertain(ctx context.Context, after time.Time) (found []UncertainAttempt, all bool, err error)

	// AmongBlacklisted returns the given words that are entries of the blacklist. A word is a phone or a mark; see
	// [BlacklistEntry].
	AmongBlacklisted(ctx context.Context, words []string) ([]string, error)
}

// UncertainAttempt is an attempt that may have reached the network; see [Message.Uncertain].
type UncertainAttempt struct {
	ID   MessageID
	At   time.Time // when the attempt began
	Next time.Time // when the dispatcher looks at the message again
}

// QuarterCount is how many messages are to leave in one quarter of an hour.
type QuarterCount struct {
	Begin time.Time
	N     int
}

// MessageEvent is something unusual that happened to a message, such as a failed attempt or a late delivery receipt.
type MessageEvent struct {
	At     time.Time
	Kind   string // retry, refused, uncertain, merge, late refused, ...
	Detail Reason // what the connector reported
}
