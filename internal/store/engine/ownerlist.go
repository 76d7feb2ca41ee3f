package engine

import (
	"context"
	"errors"

	"puntuale/internal/semaphore"
)

// ownerLists reads lists for one client. A client reads only one list at a time, so that its slow lists do not occupy
// the connections that other clients need.
type ownerLists struct {
	s     *DB
	owner int64
}

// Lists returns a Querier that reads lists for one client. Each list waits for the client's list slot.
func (s *DB) Lists(client int64) Querier { return ownerLists{s, client} }

func (l ownerLists) Query(ctx context.Context, text string, args []any, scan func(rows Row) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.s.ListReads.Timeout)
	defer cancel()
	done, err := l.s.listSlots.Enter(ctx, semaphore.Holder{Key: l.owner, Slots: 1})
	if err != nil {
		return err
	}
	defer done()
	return l.s.ListReads.Query(ctx, text, args, scan)
}

func (l ownerLists) Queue(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	return l.Query(ctx, text, args, scan)
}

func (ownerLists) Exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("lists do not write")
}
