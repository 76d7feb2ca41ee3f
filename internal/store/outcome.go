package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// messageOutcomes reads outcomes by done_at, the time when the outcome was recorded. A resend does not change done_at,
// but a correction of the outcome changes it.
const messageOutcomes = `
select m.id, m.outcome, m.state, m.reason, m.done_at from message m
where m.client_id = $1 and m.outcome <> 0 and m.done_at >= $2 and m.done_at < $3 and (m.done_at > $4 or m.done_at = $4 and m.id > $5)
order by m.done_at, m.id limit $6`

// Outcomes lists outcomes, sorted by time and id, oldest first. They were recorded between the arguments from
// (inclusive) and to (exclusive). A corrected outcome is listed only at the time of its correction. An outcome
// stays in the list after somebody sent its message again. Codes: invalid (the cursor).
func (t tenant) Outcomes(ctx context.Context, from, to time.Time, p puntuale.Page) ([]puntuale.MessageOutcome, string, error) {
	at, last, limit, err := afterOutcome(p)
	if err != nil {
		return nil, "", err
	}
	all, err := engine.QueryAll(ctx, t.lists(), messageOutcomes, []any{t.id, max(engine.Micros(from), at), engine.Micros(to), at, last, limit + 1},
		func(rows engine.Row, o *puntuale.MessageOutcome) error {
			var m puntuale.Message
			var outcome int
			if err := rows.Scan(&o.ID, &outcome, &m.State, engine.ScanReason(&m.Reason), engine.ScanTime(&o.Done)); err != nil {
				return err
			}
			if o.Sent = outcome == 1; !o.Sent {
				o.Reason = m.Response()
			}
			return nil
		})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list outcomes: %w", err))
	}
	if len(all) <= limit {
		return all, "", nil
	}
	all = all[:limit]
	end := all[limit-1]
	return all, base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "outcome:%d:%d", engine.Micros(end.Done), end.ID)), nil
}

// afterOutcome reads a cursor: done_at and id of the previous page's last outcome.
func afterOutcome(p puntuale.Page) (at, last int64, limit int, err error) {
	limit = p.Limit
	if limit <= 0 {
		limit = engine.DefaultLimit
	}
	if p.Cursor == "" {
		return 0, 0, limit, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		if parts := strings.Split(string(text), ":"); len(parts) == 3 && parts[0] == "outcome" {
			at, err = strconv.ParseInt(parts[1], 10, 64)
			id, errID := puntuale.ParseID[int64](parts[2])
			if err == nil && errID == nil && at >= 0 {
				return at, id, limit, nil
			}
		}
	}
	return 0, 0, 0, engine.BadCursor(p)
}
