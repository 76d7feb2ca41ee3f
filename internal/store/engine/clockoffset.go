package engine

import (
	"context"
	"fmt"
	"time"
)

// slight is how far a machine's clock may be from the database's without being corrected.
const slight = 2 * time.Second

// ClockOffset is how much the database's clock is ahead of this machine's. Some moments are written by one node, and
// compared with the time by another, seconds later. They are kept by the database's clock, so that the nodes' clocks
// may differ.
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

// From returns a clock that shows now at first. Outcomes are listed by the moment at which they were recorded, and a
// reader goes on from the last one it saw. So each bears the moment of its transaction. The call itself may have waited
// in a queue, or for a lost connection.
func (s *DB) From(now time.Time) func() time.Time {
	begun := s.Config.Clock.Now()
	return func() time.Time { return now.Add(max(0, s.Config.Clock.Now().Sub(begun))) }
}
