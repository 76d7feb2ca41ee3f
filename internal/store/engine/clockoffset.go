package engine

import (
	"context"
	"fmt"
	"time"
)

// slight is how far a machine's clock may be from the database's without being corrected.
const slight = 2 * time.Second

// ClockOffset is how much the database's clock is ahead of this machine's. One node writes some moments, and another node compares them
// with the time a few seconds later. Such moments use the database's clock, so that the nodes' clocks may differ.
func (s *DB) ClockOffset(ctx context.Context, a Querier) (time.Duration, error) {
	if !s.Dialect.Postgres {
		return 0, nil
	}
	var micro int64
	if _, err := QueryOne(ctx, a, `select $clock`, nil, &micro); err != nil {
		return 0, fmt.Errorf("ask the database for the time: %w", err)
	}
	if ahead := time.UnixMicro(micro).Sub(s.LocalClock.Now()); ahead.Abs() > slight {
		return ahead, nil
	}
	return 0, nil
}

// From returns a clock that begins at now. Outcomes are listed by the moment of their record, and a reader continues from the last one that
// it saw. So each outcome has the moment of its transaction, because the call may have waited before that.
func (s *DB) From(now time.Time) func() time.Time {
	begun := s.Config.Clock.Now()
	return func() time.Time { return now.Add(max(0, s.Config.Clock.Now().Sub(begun))) }
}
