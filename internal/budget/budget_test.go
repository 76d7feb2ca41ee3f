package budget

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"puntuale/internal/store/storetest"
)

var (
	enforce = flag.Bool("budgets", false, "fail when what the benchmarks measured is above its budget")
	renew   = flag.Bool("renew", false, "take what the benchmarks measured as the new baseline")
)

const benchmarkName = "BenchmarkHotPath/"

// measured contains the costs of each benchmark, one cost for each run of -count.
var measured = map[string][]cost{}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && (*enforce || *renew) {
		code = settle()
	}
	os.Exit(code)
}

// settle compares the measured costs with the baseline. With -renew, it replaces the baseline instead. It returns the
// exit code of the test program.
func settle() int {
	base, err := readTable()
	if err != nil && !*renew {
		fmt.Fprintln(os.Stderr, "budgets:", err)
		return 1
	}
	if base == nil {
		base = table{}
	}
	code := 0
	for _, o := range everywhere() {
		all := measured[o.name]
		if len(all) == 0 {
			continue
		}
		got, was := middle(all), base[o.name]
		switch above := o.excess(got, was); {
		case *renew:
			base[o.name] = got
		case above != "":
			fmt.Printf("BUDGET EXCEEDED %s: %s\n", o.name, above)
			code = 1
		case got.allocs < was.allocs/1.5 || got.bytes < was.bytes/1.5:
			fmt.Printf("%s costs much less than its budget: renew it\n", o.name)
		}
	}
	if *renew {
		err = base.write()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "budgets:", err)
		return 1
	}
	if code == 0 {
		fmt.Printf("%d operations within their budgets\n", len(measured))
	}
	return code
}

// middle returns the median of allocations and bytes. For processor time it returns the smallest value, because other
// programs can only increase it.
func middle(all []cost) cost {
	of := func(figure func(cost) float64) float64 {
		var values []float64
		for _, c := range all {
			values = append(values, figure(c))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{
		allocs: of(func(c cost) float64 { return c.allocs }), bytes: of(func(c cost) float64 { return c.bytes }),
		loops: slices.MinFunc(all, func(a, b cost) int { return cmp.Compare(a.loops, b.loops) }).loops,
	}
}

// operation is one operation of the hot path. Its name is a path. If it uses a database, the database comes last.
type operation struct {
	name     string
	messages int  // messages that one operation handles; 0: it handles no messages
	shared   bool // callers share commits, so allocations depend on how many calls share a commit by chance
	waits    bool // the operation waits for a disk or a server; the Go scheduler's cost in that time depends on the machine's load
	few      int  // how many times TestAllocations runs the operation
	// prepare makes what n operations need, and returns a function that does the operation with number i. Only that
	// function is measured.
	prepare func(t testing.TB, w *world, n int) func(i int) error
}

var drivers = []struct {
	name string
	open storetest.Driver
}{{"SQLite", storetest.SQLite}, {"PostgreSQL", storetest.Postgres}}

// everywhere lists the operations. An operation on a database is in the list once for each database.
func everywhere() []operation {
	all := slices.Clone(inMemory)
	for _, d := range drivers {
		for _, o := range onDatabase {
			o.name, o.waits = o.name+"/"+d.name, true
			all = append(all, o)
		}
	}
	return all
}

// BenchmarkHotPath measures each operation. B/op, allocs/op and loops/op count only this process. ns/op is elapsed
// time, so it depends on the other programs of the machine.
func BenchmarkHotPath(b *testing.B) {
	for _, o := range inMemory {
		b.Run(o.name, func(b *testing.B) { benchmark(b, nil, o, o.name) })
	}
	for _, d := range drivers {
		var w *world // the first operation that needs a world makes it, and all others use it
		for _, o := range onDatabase {
			name := o.name + "/" + d.name
			b.Run(name, func(inner *testing.B) {
				if w == nil {
					if d.name == "PostgreSQL" && os.Getenv(storetest.Address) == "" {
						inner.Skip("no PostgreSQL")
					}
					w = newWorld(b, d.open)
				}
				benchmark(inner, w, o, name)
			})
		}
	}
}

func benchmark(b *testing.B, w *world, o operation, name string) {
	do := o.prepare(b, w, b.N)
	b.ReportAllocs()
	calibrated := calibrate(b)
	before := readMeter()
	b.ResetTimer()
	for i := range b.N {
		if err := do(i); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	c := before.since(b.N)
	c.loops /= float64((calibrated + calibrate(b)).Nanoseconds()) / 2
	b.ReportMetric(c.loops, "loops/op")
	if o.messages > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(o.messages), "ns/message")
		b.ReportMetric(c.allocs/float64(o.messages), "allocs/message")
	}
	keep(name, b.N, c)
}

// keep stores a cost. Go runs a benchmark once and then with growing n, and only its last run counts. So keep
// replaces the cost of an earlier run of the same benchmark.
func keep(name string, n int, c cost) {
	all := measured[name]
	if n > 1 && len(all) > 0 {
		all = all[:len(all)-1]
	}
	measured[name] = append(all, c)
}
