package lookahead

import (
	"time"

	"puntuale"
)

// cursorFor bounds how long reads of a session with a backlog begin at the cursor. A row may appear before the cursor,
// and its wakeup may be lost. The next read from the beginning finds it.
const cursorFor = 5 * time.Second

// cursor is where the next read continues: every open row before it is in memory or in flight. A read from the beginning would read these
// rows and many closed rows again, which would cost more than all the rest.
type cursor struct {
	cursor  puntuale.QueueCursor // without its session; zero: at the beginning
	until   time.Time            // then the next read begins at the beginning
	strayed bool                 // since the last read began, an open row left memory
}

func (c *cursor) begin(goOn bool, now time.Time) puntuale.QueueCursor {
	if !goOn || !now.Before(c.until) {
		c.cursor = puntuale.QueueCursor{}
	}
	c.strayed = false
	return c.cursor
}

func (c *cursor) end(r Result, now time.Time) {
	switch {
	case !r.Cut && !r.NoRoom, c.strayed, !r.CanSend:
		c.cursor = puntuale.QueueCursor{}
	case r.Last == (puntuale.QueueCursor{}): // nothing was taken: as before
	case c.cursor == (puntuale.QueueCursor{}):
		c.cursor, c.until = r.Last, now.Add(cursorFor)
	default:
		c.cursor = r.Last
	}
}

// Stray makes the next read begin at the beginning: an open row may stand before the cursor.
func (l *Lookahead) Stray() { l.cursor.cursor, l.cursor.strayed = puntuale.QueueCursor{}, true }

// StrayBefore is [Lookahead.Stray], if a row that is due at a moment may stand before the cursor.
func (l *Lookahead) StrayBefore(due time.Time) {
	if !due.After(l.cursor.cursor.Next) {
		l.Stray()
	}
}

// horizon is how far ahead the next read looks.
type horizon struct {
	until time.Time // the latest moment that a wakeup named
	full  bool      // look as far as any read may
}

func (h *horizon) reach(until time.Time) {
	if until.After(h.until) {
		h.until = until
	}
}

// take returns the moment and resets it.
func (h *horizon) take(full time.Time) time.Time {
	until := h.until
	if h.full {
		until = full
	}
	*h = horizon{}
	return until
}
