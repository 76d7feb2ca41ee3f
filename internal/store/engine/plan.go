package engine

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strconv"
)

// Planned gets the plan of each statement that SQLite prepares, one line for each step. A test may set it before it opens
// a database. nil: nobody asks.
var Planned func(text string, steps []string)

var numbered = regexp.MustCompile(`\$(\d+)`)

// tellPlan asks SQLite how it runs a statement, if a test wants to know.
func tellPlan(ctx context.Context, text string, query func(ctx context.Context, text string, args ...any) (*sql.Rows, error)) {
	if Planned == nil {
		return
	}
	most := 0
	for _, m := range numbered.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // only digits
		most = max(most, n)
	}
	rows, err := query(ctx, "explain query plan "+text, slices.Repeat([]any{nil}, most)...)
	if err != nil {
		return // what is no query has no plan
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if rows.Scan(&id, &parent, &unused, &step) == nil {
			steps = append(steps, step)
		}
	}
	if rows.Err() == nil {
		Planned(text, steps)
	}
}
