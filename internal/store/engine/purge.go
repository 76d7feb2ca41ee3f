package engine

import (
	"context"
	"fmt"
)

// Purge deletes the rows that a statement finds. find is the text of the statement, and below is its first argument.
// Purge uses several transactions, and locks the rows in the order that compare defines. noun names the rows in errors.
func Purge[T any](ctx context.Context, s *DB, noun, find string, below int64, scan func(Row, *T) error,
	compare func(a, b T) int, remove func(ctx context.Context, a Querier, part []T) error,
) error {
	for {
		part, err := QueryAll(ctx, s.MaintenanceReads, find, []any{below, Chunk}, scan)
		if err != nil {
			return PublicError(fmt.Errorf("look for old %s: %w", noun, err))
		}
		if len(part) == 0 {
			return nil
		}
		Sort(part, compare)
		if err := s.Write(ctx, 0, func(ctx context.Context, a Querier) error {
			return remove(ctx, a, part)
		}); err != nil {
			return fmt.Errorf("remove old %s: %w", noun, err)
		}
		if len(part) < Chunk {
			return nil
		}
	}
}

// Chunk is the greatest number of rows that one transaction cancels or deletes. It is limited, so that a big call does
// not delay others.
const Chunk = 1000
