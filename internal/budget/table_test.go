package budget

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const tableFile = "testdata/budgets.txt"

// tableHead is the beginning of the table's file. benchstat ignores these lines, because they are not results.
const tableHead = `# What each operation of the hot path costs: the baseline that budgets are counted from. In the form of Go's benchmarks,
# so that "benchstat testdata/budgets.txt new.txt" compares; loops/op is processor time in calibration loops.
# Renewed by "make budgets BUDGETFLAGS=-renew", when a change is meant to cost what it costs.
`

// table contains the baseline cost of each operation, by the operation's name. A budget is a multiple of a baseline.
type table map[string]cost

// readTable reads the committed baseline from its file.
func readTable() (table, error) {
	text, err := os.ReadFile(tableFile)
	if err != nil {
		return nil, fmt.Errorf("read the budgets: %w", err)
	}
	t := table{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, benchmarkName) {
			continue
		}
		var name string
		var n int
		var c cost
		if _, err := fmt.Sscanf(line, "%s %d %g B/op %g allocs/op %g loops/op", &name, &n, &c.bytes, &c.allocs, &c.loops); err != nil {
			return nil, fmt.Errorf("read the budget %q: %w", strings.TrimSpace(line), err)
		}
		t[strings.TrimPrefix(name, benchmarkName)] = c
	}
	return t, nil
}

// write replaces the table's file.
func (t table) write() error {
	var out strings.Builder
	out.WriteString(tableHead)
	for _, name := range t.names() {
		c := t[name]
		fmt.Fprintf(&out, "%-55s 1 %10.0f B/op %8.1f allocs/op %9.2f loops/op\n", benchmarkName+name, c.bytes, c.allocs, c.loops)
	}
	return os.WriteFile(tableFile, []byte(out.String()), 0o600)
}

func (t table) names() (all []string) {
	for name := range t {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// These constants say how many times the baseline an operation may cost. One goroutine allocates almost the same in
// each run. If callers share commits, allocations depend on how many calls share a commit by chance. Processor time
// depends on caches, other programs and the Go scheduler, so its limit only finds changes that multiply it.
const (
	slackAllocs = 1.10
	slackBytes  = 1.20
	slackShared = 1.60
	slackLoops  = 2.0
	slackWaits  = 3.0
)

// excess names the costs that are above their budget, or returns "".
func (o operation) excess(got, was cost) string {
	allocs, bytes, loops := slackAllocs, slackBytes, slackLoops
	if o.waits {
		loops = slackWaits
	}
	if o.shared {
		allocs, bytes = slackShared, slackShared
	}
	var above []string
	check := func(unit string, got, was, maximum float64) {
		if got > maximum {
			above = append(above, fmt.Sprintf("%.1f %s, budget %.1f (baseline %.1f)", got, unit, maximum, was))
		}
	}
	check("allocs/op", got.allocs, was.allocs, was.allocs*allocs+2)
	check("B/op", got.bytes, was.bytes, was.bytes*bytes+256)
	check("loops/op", got.loops, was.loops, was.loops*loops+0.2)
	return strings.Join(above, "; ")
}
