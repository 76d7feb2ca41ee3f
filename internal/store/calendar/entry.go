package calendar

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

const entryColumns = `e.reference, e.start_at, e.all_day, e.title, e.place, e.phone, e.name, e.cancelled, e.problem, e.warning, e.digest, e.applied, e.withdrawn, e.missing, e.refused`

func scanEntry(r engine.Row, e *puntuale.CalendarEntry) error {
	return r.Scan(&e.Reference, engine.ScanTime(&e.Start), engine.ScanBool(&e.AllDay), &e.Title, &e.Place, &e.Phone, &e.Name, engine.ScanBool(&e.Cancelled), &e.Problem, &e.Warning,
		&e.Digest, &e.Applied, engine.ScanBool(&e.Withdrawn), &e.Missing, &e.Refused)
}

// CalendarEntries lists the entries of a calendar by their start; with problems, only those that are no appointments, or
// whose booking could not be changed. Codes: not_found, invalid (the cursor).
func (s ClientCalendars) CalendarEntries(ctx context.Context, id puntuale.CalendarID, problems bool, p puntuale.Page) ([]puntuale.CalendarEntry, string, error) {
	if _, err := s.Calendar(ctx, id); err != nil {
		return nil, "", err
	}
	start, reference, err := entryCursor(p)
	if err != nil {
		return nil, "", err
	}
	limit := p.Limit
	if limit <= 0 {
		limit = engine.DefaultLimit
	}
	all, err := engine.QueryAll(ctx, s.db.Lists(int64(s.client)), `select `+entryColumns+` from calendar_entry e where e.client_id = $1 and e.calendar_id = $2 and (e.start_at, e.reference) > ($3, $4)
 and ($6 = 0 or e.problem <> '' or e.refused <> '') order by e.start_at, e.reference limit $5`, []any{s.client, id, start, reference, limit + 1, engine.Bit(problems)}, scanEntry)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list the entries of a calendar: %w", err))
	}
	if err := engine.TakeMemory(ctx, len(all), 0); err != nil {
		return nil, "", err
	}
	if len(all) <= limit {
		return all, "", nil
	}
	last := all[limit-1]
	return all[:limit], base64.RawURLEncoding.EncodeToString([]byte("entry:" + strconv.FormatInt(engine.Micros(last.Start), 10) + ":" + last.Reference)), nil
}

func entryCursor(p puntuale.Page) (start int64, reference string, err error) {
	if p.Cursor == "" {
		return -1, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		noun, rest, _ := strings.Cut(string(text), ":")
		number, after, ok := strings.Cut(rest, ":")
		if start, err = strconv.ParseInt(number, 10, 64); err == nil && ok && noun == "entry" {
			return start, after, nil
		}
	}
	return 0, "", engine.BadCursor(p)
}
