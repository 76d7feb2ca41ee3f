package store

import "context"

// PlainRow is a message of the benchmarks.
type PlainRow struct{ Client, Session, ID, Due int64 }

// PlainInsert is what the benchmarks compare with: message rows, many a statement, through a writer and nothing else.
func PlainInsert(s *Store, rows []PlainRow) error {
	const hour = 3_600_000_000
	column := func(f func(r *PlainRow) int64) []int64 { return pick(rows, f) }
	id := column(func(r *PlainRow) int64 { return r.ID })
	b := batch{
		column(func(r *PlainRow) int64 { return r.Client }), id, column(func(r *PlainRow) int64 { return r.Session }), id,
		column(func(r *PlainRow) int64 { return r.Due }), column(func(r *PlainRow) int64 { return r.Due }),
		column(func(r *PlainRow) int64 { return r.Due + 48*hour }), column(func(*PlainRow) int64 { return 0 }),
		column(func(*PlainRow) int64 { return 2 }), pick(rows, func(*PlainRow) string { return "+393331234567" }),
	}
	return s.tenants[0].perform(context.Background(), single(s.kinds.write, func(ctx context.Context, a asker) error {
		_, err := a.exec(ctx, insertMessages, b)
		return err
	}), false)
}
