package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"time"

	"puntuale"
)

// maxOutcomes is the most that one answer lists; the contract sets it.
const maxOutcomes = 1000

// OutcomeQuery asks for the outcomes of a period.
type OutcomeQuery struct {
	Period request.Period
	Cursor string           // "" from the beginning, else the cursor of the last answer
	Faults []puntuale.Fault // found by the caller in the request itself
}

// Outcomes lists what became of messages by the moment it was recorded, oldest first, at most 1,000, with the cursor of
// what follows. The answer about a period that is over is complete, and so is a page that another one follows. Asked
// within two seconds after, it waits. A period still running is answered at once, with all that is there. Codes:
// invalid.
func (c *Client) Outcomes(ctx context.Context, q OutcomeQuery) ([]puntuale.MessageOutcome, string, error) {
	loc, err := c.zone()
	if err != nil {
		return nil, "", err
	}
	var f request.Faults
	from, to := q.Period.Strict(&f, loc)
	f = append(f, q.Faults...)
	f.Text("query.cursor", q.Cursor, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	if !from.Before(to) { // in the hour that a clock change skips
		return nil, "", nil
	}
	var rows []puntuale.MessageOutcome
	var next string
	err = c.follow(ctx, func(now time.Time) (complete time.Time, err error) {
		rows, next, err = c.tenant.Outcomes(ctx, from, to, puntuale.Page{Limit: maxOutcomes, Cursor: q.Cursor})
		switch {
		case next != "":
			complete = rows[len(rows)-1].Done
		case !now.Before(to):
			complete = to
		}
		return complete, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list outcomes: %w", err)
	}
	return rows, next, nil
}
