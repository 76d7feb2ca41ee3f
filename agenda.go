package puntuale

import (
	"context"
	"time"
)

// AgendaStore shows a client its days: what left, what is to leave, and what became of one message.
type AgendaStore interface {
	// Ended lists messages whose outcome was recorded from (inclusive) to (exclusive), newest first, at most limit. With
	// failed it lists those that did not leave, and looks no further back than the last 5,000 outcomes.
	Ended(ctx context.Context, from, to time.Time, failed bool, limit int) ([]MessageDetail, error)

	// Upcoming lists PENDING messages whose next moment lies from (inclusive) to (exclusive), soonest first, at most limit.
	Upcoming(ctx context.Context, from, to time.Time, limit int) ([]MessageDetail, error)

	// UpcomingCounts counts PENDING messages from (inclusive) to (exclusive) by quarter of an hour, soonest first. Quarters
	// without any are left out.
	UpcomingCounts(ctx context.Context, from, to time.Time) ([]QuarterCount, error)

	// CountMessages counts the messages that a filter finds, up to most, and reports whether that is all of them.
	CountMessages(ctx context.Context, f MessageFilter, most int) (n int, all bool, err error)

	// Version returns a text that is another once what lists of messages show has changed. It is cheap enough to be asked
	// every second or two, and may miss what happens to messages that are neither new nor due.
	Version(ctx context.Context) (string, error)
}

// HistoryStore reads what happened to one message.
type HistoryStore interface {
	// MessageEvents lists what was not normal about a message, oldest first, at most 200.
	MessageEvents(ctx context.Context, id MessageID) ([]MessageEvent, error)

	// ResentAs lists the messages that a message of a run was sent again as, oldest first.
	ResentAs(ctx context.Context, run RunID, id MessageID) ([]MessageID, error)
}

// OutlookStore tells of pending messages what their state alone does not.
type OutlookStore interface {
	// Uncertain lists the attempts whose outcome is uncertain, the latest first. It looks through at most 20,000 of the
	// client's open messages that are due, or to be looked at again, after a moment. It reports whether those are all.
	Uncertain(ctx context.Context, after time.Time) (found []UncertainAttempt, all bool, err error)

	// AmongBlacklisted returns those of the words, phones or marks, under which an entry of the blacklist stands.
	AmongBlacklisted(ctx context.Context, words []string) ([]string, error)
}

// UncertainAttempt is an attempt that may have reached the network; see [Message.Uncertain].
type UncertainAttempt struct {
	ID   MessageID
	At   time.Time // of the attempt
	Next time.Time // when it is looked at again
}

// QuarterCount is how many messages are to leave in a quarter of an hour.
type QuarterCount struct {
	Begin time.Time
	N     int
}

// MessageEvent is something about a message that is not normal: an attempt that did not succeed, evidence that came late.
type MessageEvent struct {
	At     time.Time
	Kind   string // retry, refused, uncertain, merge, late refused, ...
	Detail Reason // the connector's words
}
