package engine

import (
	"context"
	"fmt"
	"time"
)

// slight is the largest clock offset that is ignored.
const slight = 2 * time.Second

// ClockOffset returns how far the database's clock is ahead of this machine's clock. Some timestamps are written by one
// node, and compared by another node a few seconds later. They use the database's clock, because the nodes' clocks may
// differ.
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

// ClockAt returns a clock that shows the time now at first, and then advances like the configured clock. A call may
// wait before its transaction. With this clock, an outcome gets the time of its transaction, not the time of the call.
// Readers need this, because they list outcomes by time and continue after the last outcome that they saw.
func (s *DB) ClockAt(now time.Time) func() time.Time {
	begun := s.Config.Clock.Now()
	return func() time.Time { return now.Add(max(0, s.Config.Clock.Now().Sub(begun))) }
}
