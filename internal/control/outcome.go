package control

import (
	"context"
	"fmt"

	"puntuale"
)

// maxOutcomes is the most that one answer lists; the contract sets it.
const maxOutcomes = 1000

// OutcomeQuery asks for the outcomes of a period.
type OutcomeQuery struct {
	Period Period
	Cursor string           // "" from the beginning, else that of the answer before
	Faults []puntuale.Fault // found by the caller in the request itself
}

// Outcomes lists what became of messages by the moment it was recorded, oldest first, at most 1,000, with the cursor of
// what follows. A minute that the clocks show twice is its first occurrence. Codes: invalid.
func (c *Client) Outcomes(ctx context.Context, q OutcomeQuery) ([]puntuale.MessageOutcome, string, error) {
	loc, err := c.zone()
	if err != nil {
		return nil, "", err
	}
	var f faults
	from, to := q.Period.strict(&f, loc)
	f = append(f, q.Faults...)
	f.text("query.cursor", q.Cursor, puntuale.MaxName)
	if err := f.err(); err != nil {
		return nil, "", err
	}
	if !from.Before(to) { // in the hour that a clock change skips
		return nil, "", nil
	}
	rows, next, err := c.tenant.Outcomes(ctx, from, to, puntuale.Page{Limit: maxOutcomes, Cursor: q.Cursor})
	if err != nil {
		return nil, "", fmt.Errorf("list outcomes: %w", err)
	}
	return rows, next, nil
}
