package lookahead

import (
	"time"

	"puntuale"
)

// cursorFor is how long reads of a session with a backlog may begin at the cursor. A row may be inserted before the
// cursor, and its wakeup may be lost. The next read from the beginning finds this row.
const cursorFor = 5 * time.Second

// cursor is where the next read continues. Every open row before the cursor is in memory or in flight. A read from the
// beginning would read these rows again, and many closed rows. Such reads would cost more than all other work.
type cursor struct {
	cursor     puntuale.QueueCursor // position without its session; zero: the beginning
	validUntil time.Time            // after this time, reads start at the beginning
	fromStart  bool                 // true: an open row left memory after the last read began
}

func (c *cursor) begin(fromCursor bool, now time.Time) puntuale.QueueCursor {
	if !fromCursor || !now.Before(c.validUntil) {
		c.cursor = puntuale.QueueCursor{}
	}
	c.fromStart = false
	return c.cursor
}

func (c *cursor) end(r Result, now time.Time) {
	switch {
	case !r.Cut && !r.NoRoom, c.fromStart, !r.CanSend:
		c.cursor = puntuale.QueueCursor{}
	case r.Last == (puntuale.QueueCursor{}): // the read handled no row, so the cursor does not move
	case c.cursor == (puntuale.QueueCursor{}):
		c.cursor, c.validUntil = r.Last, now.Add(cursorFor)
	default:
		c.cursor = r.Last
	}
}

// ReadFromStart makes the next read start at the beginning, because an open row may now be before the cursor.
func (l *Lookahead) ReadFromStart() {
	l.cursor.cursor, l.cursor.fromStart = puntuale.QueueCursor{}, true
}

// ReadFromStartIfBefore does the same as [Lookahead.ReadFromStart], if a row with this due time may be before the
// cursor.
func (l *Lookahead) ReadFromStartIfBefore(due time.Time) {
	if !due.After(l.cursor.cursor.Next) {
		l.ReadFromStart()
	}
}

// horizon is how far into the future the next read looks.
type horizon struct {
	end  time.Time // the latest due time of any wakeup
	full bool      // true: the next read looks as far as a read may look
}

func (h *horizon) reach(horizonEnd time.Time) {
	if horizonEnd.After(h.end) {
		h.end = horizonEnd
	}
}

// take returns the time until which the next read looks, and resets h. full is how far a read may look.
func (h *horizon) take(full time.Time) time.Time {
	horizonEnd := h.end
	if h.full {
		horizonEnd = full
	}
	*h = horizon{}
	return horizonEnd
}
