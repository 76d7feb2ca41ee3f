package engine

import (
	"context"

	"puntuale"
)

// The most bytes of a page, and how much of a call's memory grant it takes. A row is in memory three times: as read, as converted and as
// written. The buffer for writing grows by doubling.
const (
	PageBytes   = 4 << 20 // of the long columns of its rows; a longer page ends early, and has a cursor
	memoryTimes = 4
	memoryOfRow = 2 << 10 // bytes, for the short columns
	rowsAtOnce  = 64      // memory is taken for this many rows at once
)

// TakeRoom takes memory of the call's grant for rows whose long columns have this many bytes together.
func TakeMemory(ctx context.Context, rows, bytes int) error {
	return puntuale.TakeMemory(ctx, int64(rows*memoryOfRow+bytes*memoryTimes))
}

// SizedRow is a row's identifier and length, for the size of a page.
type SizedRow struct {
	Id    int64
	Bytes int
}

// PageSpan is the part of a list that one page shows: its rows' first and last identifiers.
type PageSpan struct {
	Rows int
	Last int64
	Next string // the cursor of the next page
}

// ReadPageSpan finds how far a page reaches: limit rows, or as many as hold [PageBytes], but at least one. It takes the memory that they
// need. The statement returns id and length of each row, one row more than the page may show.
func ReadPageSpan(ctx context.Context, a Querier, noun, text string, args []any, limit int) (s PageSpan, err error) {
	all, err := QueryAll(ctx, a, text, args, func(r Row, into *SizedRow) error { return r.Scan(&into.Id, &into.Bytes) })
	if err != nil {
		return s, err
	}
	return MakePageSpan(ctx, noun, all, limit)
}

// MakePageSpan does the work of [ReadPageSpan] for rows that were read already.
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
