// Command bench measures the product against a plain grouped insert of the same rows, on the same databases, in one
// run. It is a module of its own, so that nothing it needs enters the product's go.mod. Figures are medians of
// interleaved repeats; only the ratios mean something on another machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	quick := flag.Bool("quick", false, "small sizes, one repeat")
	only := flag.String("only", "", "measure only what contains this word: insert, start, http, dispatch, late")
	repeats := flag.Int("repeats", 3, "interleaved repeats of each measurement")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process to the file")
	flag.Parse()
	if *profile != "" {
		end, err := startProfile(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer end()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *quick, *only, *repeats, os.Getenv("PUNTUALE_TEST_POSTGRES")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// startProfile writes a CPU profile until the returned function is called.
func startProfile(name string) (end func(), err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// result is one figure of one repeat.
type result struct {
	database, what string
	value          float64
	unit           string
}

// measurement is one thing to measure on one database.
type measurement struct {
	name string
	take func(ctx context.Context, f *fixture, size sizes) ([]result, error)
}

type sizes struct {
	rows     int           // messages inserted, started or dispatched
	workers  int           // concurrent callers
	lateFor  time.Duration // of the lateness measurement
	lateRate int           // messages a second
}

func run(ctx context.Context, quick bool, only string, repeats int, postgres string) error {
	size := sizes{rows: 60_000, workers: 64, lateFor: 20 * time.Second, lateRate: 500}
	if quick {
		size, repeats = sizes{rows: 15_000, workers: 64, lateFor: 5 * time.Second, lateRate: 500}, 1
	}
	measurements := []measurement{
		{"insert", plainInsert}, {"start", startCalls}, {"http", httpCalls}, {"dispatch", dispatchRate}, {"late", lateness},
	}
	var all []result
	for range repeats {
		for _, m := range measurements {
			if !strings.Contains(m.name, only) {
				continue
			}
			for _, database := range []string{"SQLite", "PostgreSQL"} {
				if database == "PostgreSQL" && postgres == "" {
					continue
				}
				got, err := once(ctx, m, database, postgres, size)
				if err != nil {
					return fmt.Errorf("%s on %s: %w", m.name, database, err)
				}
				all = append(all, got...)
			}
		}
	}
	print(all)
	return nil
}

// once takes one measurement on a fresh database.
func once(ctx context.Context, m measurement, database, postgres string, size sizes) ([]result, error) {
	folder, err := os.MkdirTemp("", "puntuale-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	address := ""
	if database == "PostgreSQL" {
		fresh, drop, err := freshPostgres(ctx, postgres)
		if err != nil {
			return nil, err
		}
		defer drop()
		address = fresh
	}
	f, err := open(ctx, address, folder, 200)
	if err != nil {
		return nil, err
	}
	f.address, f.file = address, folder+"/puntuale.db"
	got, err := m.take(ctx, f, size)
	if closed := f.store.Close(); err == nil {
		err = closed
	}
	for i := range got {
		got[i].database = database
	}
	return got, err
}

// print writes one table of medians, with the ratio of each rate to the plain insert of the same run.
func print(all []result) {
	type key struct{ database, what string }
	values, units := map[key][]float64{}, map[key]string{}
	var order []key
	for _, r := range all {
		k := key{r.database, r.what}
		if values[k] == nil {
			order = append(order, k)
		}
		values[k], units[k] = append(values[k], r.value), r.unit
	}
	slices.SortStableFunc(order, func(a, b key) int { return strings.Compare(a.database, b.database) })
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "database\tmeasured\tmedian\tunit\tof plain insert")
	for _, k := range order {
		ratio := ""
		if base := values[key{k.database, "plain grouped insert"}]; base != nil && units[k] == "messages/s" {
			ratio = fmt.Sprintf("%.2f", median(values[k])/median(base))
		}
		fmt.Fprintf(out, "%s\t%s\t%.5g\t%s\t%s\n", k.database, k.what, median(values[k]), units[k], ratio)
	}
	out.Flush()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
