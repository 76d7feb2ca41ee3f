package engine

import (
	"context"
	"fmt"
	"time"
)

// slight is a difference between the machine's clock and the database's that is too small to be corrected.
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

// From returns a clock that begins at now. Readers list outcomes by moment, and continue after the last one that they saw. A call may wait
// before its transaction. So an outcome gets the moment of the transaction, not the moment of the call.
func (s *DB) From(now time.Time) func() time.Time {
	begun := s.Config.Clock.Now()
	return func() time.Time { return now.Add(max(0, s.Config.Clock.Now().Sub(begun))) }
}
