package engine

import (
	"context"

	"puntuale"
)

// Limits of a page in bytes, and of the memory that it takes from the call's memory grant. Memory holds a row's long
// columns about three times: as read, as converted and as written. The buffer for writing also grows by doubling, so
// memoryTimes is 4.
const (
	// PageBytes limits the total bytes of the long columns on a page. A page that would be longer ends early, and has a
	// cursor for the next page.
	PageBytes   = 4 << 20
	memoryTimes = 4
	memoryOfRow = 2 << 10 // bytes for the short columns of one row
	rowsAtOnce  = 64      // memory is reserved for this many rows at a time
)

// TakeMemory takes memory from the call's memory grant. rows is the number of rows. bytes is the total length of their
// long columns.
func TakeMemory(ctx context.Context, rows, bytes int) error {
	return puntuale.TakeMemory(ctx, int64(rows*memoryOfRow+bytes*memoryTimes))
}

// SizedRow contains the identifier of a row, and the length of its long columns in bytes.
type SizedRow struct {
	Id    int64
	Bytes int
}

// PageSpan describes which part of a list one page shows.
type PageSpan struct {
	Rows int
	Last int64
	Next string // cursor of the next page
}

// ReadPageSpan finds the end of a page and takes the memory for the page's rows. A page ends after limit rows or after
// [PageBytes], but it has at least one row. The statement must return the id and the length of each row, for limit rows
// and one more.
func ReadPageSpan(ctx context.Context, a Querier, noun, text string, args []any, limit int) (s PageSpan, err error) {
	all, err := QueryAll(ctx, a, text, args, func(r Row, target *SizedRow) error { return r.Scan(&target.Id, &target.Bytes) })
	if err != nil {
		return s, err
	}
	return MakePageSpan(ctx, noun, all, limit)
}

// MakePageSpan does the same as [ReadPageSpan] for rows that are already read.
func MakePageSpan(ctx context.Context, noun string, all []SizedRow, limit int) (s PageSpan, err error) {
	sum := 0
	for _, row := range all[:min(limit, len(all))] {
		if sum+row.Bytes > PageBytes && s.Rows > 0 {
			break
		}
		sum += row.Bytes
		s.Rows, s.Last = s.Rows+1, row.Id
	}
	if s.Rows < len(all) {
		s.Next = CursorAt(noun, s.Last)
	}
	return s, TakeMemory(ctx, 0, sum)
}
