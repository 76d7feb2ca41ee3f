package engine

import (
	"context"
	"fmt"
	"slices"
)

// Purge removes the rows that a statement finds below a bound, a chunk in each transaction. It locks the rows in order.
func Purge[T any](ctx context.Context, s *DB, what, find string, below int64, scan func(Row, *T) error,
	compare func(a, b T) int, remove func(ctx context.Context, a Querier, part []T) error,
) error {
	for {
		part, err := QueryAll(ctx, s.MaintenanceReads, find, []any{below, Chunk}, scan)
		if err != nil {
			return PublicError(fmt.Errorf("look for old %s: %w", what, err))
		}
		if len(part) == 0 {
			return nil
		}
		slices.SortFunc(part, compare)
		if err := s.Write(ctx, 0, func(ctx context.Context, a Querier) error {
			return remove(ctx, a, part)
		}); err != nil {
			return fmt.Errorf("remove old %s: %w", what, err)
		}
		if len(part) < Chunk {
			return nil
		}
	}
}

// Chunk bounds the rows that one transaction cancels, so that a big cancellation does not delay all others.
const Chunk = 1000
