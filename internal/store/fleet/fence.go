package fleet

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Fence checks the node's lease and locks the node's row until the transaction commits. Another node takes over by
// deleting this row (Reap), so it cannot take over before that commit. If the lease has ended or the row was deleted,
// Fence returns [puntuale.ErrFenced]. A lease on another timeline is not valid (timeline.go).
func Fence(ctx context.Context, a engine.Querier, node puntuale.NodeID) error {
	var n int64
	alive, err := engine.QueryOne(ctx, a, liveNode, []any{node}, &n)
	return fenced(alive, err)
}

const liveNode = `select id from node where id = $1 and lease_until > $clock and timeline = $timeline for key share`

func fenced(alive bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("look for the node's lease: %w", err)
	case !alive:
		return puntuale.ErrFenced
	}
	return nil
}

// Leased does the same as Fence, but without its own round trip to the database. The caller must call held after its
// next statement has returned. held returns the result of the check.
func Leased(ctx context.Context, a engine.Querier, node puntuale.NodeID) (held func() error, err error) {
	alive := false
	err = a.Queue(ctx, liveNode, []any{node}, func(engine.Row) error { alive = true; return nil })
	if err != nil {
		return nil, fenced(false, err)
	}
	return func() error { return fenced(alive, nil) }, nil
}
