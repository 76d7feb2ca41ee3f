package store

import (
	"context"

	"puntuale"
)

// What a page of a list may hold, and what is taken of a call's room for it. A row is there three times, as read, as
// converted and as written, and the buffer that it is written into grows by doubling.
const (
	pageBytes  = 4 << 20 // of what is long in its rows; a longer page ends early, and has a cursor
	roomTimes  = 4
	roomOfRow  = 2 << 10 // bytes, for what is short
	rowsAtOnce = 64      // room is taken for so many
)

// takeRoom takes the room of rows that hold so many bytes of what is long.
func takeRoom(ctx context.Context, rows, bytes int) error {
	return puntuale.TakeRoom(ctx, int64(rows*roomOfRow+bytes*roomTimes))
}

// sized is a row as a page reckons with it.
type sized struct {
	id    int64
	bytes int
}

// stretch is the part of a list that one page shows: its rows' first and last identifiers.
type stretch struct {
	rows int
	last int64
	next string // the cursor of the next page
}

// stretchOf finds how far a page reaches: limit rows, or as many as hold [pageBytes], but at least one. It takes the room
// that they need. The statement returns id and length of each row, one row more than the page may show.
func stretchOf(ctx context.Context, a asker, noun, text string, args []any, limit int) (s stretch, err error) {
	all, err := list(ctx, a, text, args, func(r row, into *sized) error { return r.Scan(&into.id, &into.bytes) })
	if err != nil {
		return s, err
	}
	return stretchFrom(ctx, noun, all, limit)
}

// stretchFrom is [stretchOf] of rows that were read.
func stretchFrom(ctx context.Context, noun string, all []sized, limit int) (s stretch, err error) {
	sum := 0
	for _, row := range all[:min(limit, len(all))] {
		if sum+row.bytes > pageBytes && s.rows > 0 {
			break
		}
		sum += row.bytes
		s.rows, s.last = s.rows+1, row.id
	}
	if s.rows < len(all) {
		s.next = cursorAt(noun, s.last)
	}
	return s, takeRoom(ctx, 0, sum)
}
