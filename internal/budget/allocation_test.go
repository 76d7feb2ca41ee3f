//go:build !race

package budget

import "testing"

// TestAllocations checks that the hot path allocates no more than its budgets. Only "make budgets" checks processor
// time, because on a loaded machine that check could fail without a reason. The test is not parallel, because Go
// counts allocations for the whole process.
func TestAllocations(t *testing.T) {
	base, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range inMemory {
		t.Run(o.name, func(t *testing.T) { o.allocations(t, nil, base, o.name) })
	}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			w := newWorld(t, d.open)
			for _, o := range onDatabase {
				t.Run(o.name, func(t *testing.T) { o.allocations(t, w, base, o.name+"/"+d.name) })
			}
		})
	}
}

// allocations measures an operation several times, because other goroutines of this process may allocate meanwhile.
func (o operation) allocations(t *testing.T, w *world, base table, name string) {
	t.Helper()
	was, ok := base[name]
	if !ok {
		t.Fatalf("%s has no budget: make budgets BUDGETFLAGS=-renew", name)
	}
	above := ""
	for range 3 {
		do := o.prepare(t, w, o.few)
		before := readMeter()
		for i := range o.few {
			if err := do(i); err != nil {
				t.Fatal(err)
			}
		}
		got := before.since(o.few)
		got.loops = 0
		if above = o.excess(got, was); above == "" {
			return
		}
	}
	t.Errorf("%s: %s", name, above)
}

// TestBudgetIsNoticed checks that a budget refuses a cost above it, and accepts a cost within it.
func TestBudgetIsNoticed(t *testing.T) {
	was := cost{allocs: 100, bytes: 10_000, loops: 10}
	for name, c := range map[string]struct {
		is    cost
		above bool
	}{
		"the same":        {was, false},
		"less":            {cost{50, 5000, 5}, false},
		"a little more":   {cost{105, 11_000, 15}, false},
		"more allocated":  {cost{120, 10_000, 10}, true},
		"more bytes":      {cost{100, 13_000, 10}, true},
		"more processing": {cost{100, 10_000, 25}, true},
	} {
		if above := (operation{}).excess(c.is, was); (above != "") != c.above {
			t.Errorf("%s: %q", name, above)
		}
	}
}
