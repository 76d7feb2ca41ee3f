// Command bench measures the product and its peers in one run. All of them use the same database servers and the same
// disk, with the same durability. The bench is a separate module, so that its dependencies do not enter the product's
// go.mod. Figures are medians of interleaved repeats. On another machine only the ratios are comparable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
)

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "small sizes and one repeat, in under three minutes: to see that it works, not to quote")
	flag.BoolVar(&o.full, "full", false, "also with 10 million pending messages: about 35 minutes, and 35 GB of disk")
	flag.StringVar(&o.only, "only", "", "only what contains one of these words, separated by commas: "+strings.Join(partNames(), ", "))
	flag.IntVar(&o.repeats, "repeats", 3, "interleaved repeats of each measurement")
	flag.StringVar(&o.write, "write", "", "put the results into benchmark.md of this folder, the picture beside it, and all figures into ../bench/figures.txt")
	flag.BoolVar(&o.backends, "backends", false, "show the processor time of each of PostgreSQL's processes")
	flag.BoolVar(&o.ours, "ours", false, "leave the peers out")
	flag.StringVar(&o.engine, "engine", "", "only on SQLite or on PostgreSQL")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process to the file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options contains the values of the flags.
type options struct {
	quick, full, backends, ours  bool
	only, write, profile, engine string
	repeats                      int
}

// run does all measurements and prints them. If one measurement fails, run reports this and continues with the others.
func run(ctx context.Context, o options) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // the same value as in a server; the peers' workers also profit from it
	}
	if o.profile != "" {
		end, err := startProfile(o.profile)
		if err != nil {
			return err
		}
		defer end()
	}
	b, err := newBench(ctx, o, os.Getenv("PUNTUALE_TEST_POSTGRES"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	failed := b.measure(ctx)
	if err := b.print(os.Stdout); err != nil {
		return err
	}
	if o.write != "" {
		if err := b.writePages(o.write); err != nil {
			return err
		}
	}
	return failed
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
