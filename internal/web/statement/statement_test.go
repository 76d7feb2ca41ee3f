package statement

import (
	"slices"
	"testing"

	"puntuale"
	"puntuale/internal/control/statement"
)

// TestRowsSayTheirState: each row of a file says how final it is. A client of whose messages none is counted has a row, too.
func TestRowsSayTheirState(t *testing.T) {
	lines := []puntuale.StatementLine{{MessageKind: puntuale.MessageKind{Country: "IT", Category: "marketing"}, Network: puntuale.Official, Messages: 2, Price: "0.10"}}
	p := Page{Month: 202611}
	for _, c := range []struct {
		name     string
		state    statement.State
		complete bool
		lines    []puntuale.StatementLine
	}{{"A", statement.Open, true, lines}, {"B", statement.Closing, true, lines}, {"C", statement.Missed, true, lines}, {"D", statement.Closed, true, lines}, {"E", statement.Open, false, lines}, {"F", statement.Open, false, nil}, {"G", statement.Open, true, nil}} {
		p.All = append(p.All, Of{Statement: puntuale.Statement{Lines: c.lines, Complete: c.complete}, Name: c.name, State: c.state})
	}
	for network, columns := range map[bool]int{true: 14, false: 11} {
		var got []string
		for _, row := range rowsOf(p, network, columns) {
			if len(row) != columns {
				t.Errorf("%q has %d columns, want %d", row, len(row), columns)
			}
			got = append(got, row[0]+" "+row[len(row)-1])
		}
		if want := []string{"A open", "B closing", "C missed", "D closed", "E incomplete", "F incomplete"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
