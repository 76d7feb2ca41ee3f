package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The databases that the product runs on.
const (
	sqlite   = "SQLite"
	postgres = "PostgreSQL"
)

// bench is one run: its databases, its folder, its sizes and its figures.
type bench struct {
	options
	sizes
	address string // address of a PostgreSQL where the bench makes its own databases; "": there is none
	folder  string // folder for all files on the disk
	binary  string // file name of the product's program; "": not built yet
	redis   redisServer
	stock   map[stockKey]stocked
	tuned   map[string]int // index of a peer's best settings in the first repeat, by figure
	machine machine
	sheet   sheet
}

// sizes says how much the bench measures.
type sizes struct {
	inserted  int           // how many rows we and River insert
	rows      int           // how many rows we and River dispatch
	tasks     int           // how many tasks asynq dispatches without fsync; with fsync, asynq dispatches a quarter of them
	calls     int           // how many calls over HTTP are measured
	workers   int           // how many callers call a store at the same time
	late      time.Duration // the length of each measurement of lateness
	lateRates []int         // the rates at which lateness is measured, in messages a second
	pending   []int         // numbers of pending messages, which are planned for later days
	reads     int           // how many queries of each kind are measured
	settle    time.Duration // how long the bench waits before it reads the memory
	lists     lists
	idle      time.Duration // how long a server gets only start calls
}

func sizesOf(o options) sizes {
	s := sizes{
		inserted: 480_000, rows: 120_000, tasks: 40_000, calls: 24_000, workers: 64, late: 8 * time.Second, lateRates: []int{500, 2000, 10_000},
		pending: []int{10_000, 100_000, 1_000_000}, reads: 200, settle: 10 * time.Second, lists: fullLists, idle: 20 * time.Second,
	}
	if o.quick {
		s = sizes{
			inserted: 120_000, rows: 30_000, tasks: 12_000, calls: 6_000, workers: 64, late: 2 * time.Second, lateRates: []int{2000, 10_000},
			pending: []int{10_000, quickPending}, reads: 50, settle: 3 * time.Second, lists: quickLists, idle: 4 * time.Second,
		}
	}
	if o.full {
		s.pending = append(s.pending, 10_000_000)
	}
	return s
}

// part is one measurement. Measurements that are compared follow each other.
type part struct {
	name string
	take func(*bench, context.Context) error
}

var parts = []part{
	{"insert", (*bench).inserts},
	{"dispatch", (*bench).dispatches},
	{"pending", (*bench).dispatchesBeside},
	{"http", (*bench).httpCalls},
	{"late", (*bench).lateness},
	{"reads", (*bench).readings},
	{"memory", (*bench).memory},
	{"campaign", (*bench).campaigns},
	{"reply", (*bench).replies},
	{"event", (*bench).events},
	{"automation", (*bench).automations},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func newBench(ctx context.Context, o options, address string) (*bench, error) {
	if o.quick {
		o.repeats = 1
	}
	folder, err := os.MkdirTemp("", "puntuale-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	b := &bench{options: o, sizes: sizesOf(o), address: address, folder: folder, stock: map[stockKey]stocked{}, tuned: map[string]int{}}
	b.machine, err = describe(ctx, b)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error {
	for _, s := range b.stock {
		s.drop()
	}
	return os.RemoveAll(b.folder)
}

// engines returns the databases on which the bench measures.
func (b *bench) engines() (all []string) {
	for _, engine := range []string{sqlite, postgres} {
		if (engine == sqlite || b.address != "") && strings.Contains(strings.ToLower(engine), strings.ToLower(b.engine)) {
			all = append(all, engine)
		}
	}
	return all
}

// onPostgres reports whether the bench measures on PostgreSQL. comparesOthers reports whether it also measures the
// peers.
func (b *bench) onPostgres() bool     { return slices.Contains(b.engines(), postgres) }
func (b *bench) comparesOthers() bool { return !b.ours }

// tries reports whether the i-th of a peer's settings is measured. The first repeat measures all settings, and later
// repeats only the best of them. A quick run measures only the second settings.
func (b *bench) tries(name string, i int) bool {
	if b.quick {
		return i == 1
	}
	return b.first() || i == b.tuned[name]
}

// measure does all measurements in each repeat.
func (b *bench) measure(ctx context.Context) (failed error) {
	for b.sheet.repeat = range b.repeats {
		for _, p := range parts {
			if !b.wanted(p.name) {
				continue
			}
			if err := b.takePart(ctx, p); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
			}
			if ctx.Err() != nil {
				return errors.Join(failed, ctx.Err())
			}
		}
	}
	return failed
}

// takePart does one measurement. It also notes how much of the machine other processes used during this time.
func (b *bench) takePart(ctx context.Context, p part) error {
	begun, others := time.Now(), b.othersCPU()
	ctx, cancel := context.WithTimeout(ctx, partLimit)
	defer cancel()
	err := p.take(b, ctx)
	took := time.Since(begun)
	share := 100 * (b.othersCPU() - others).Seconds() / took.Seconds() / float64(runtime.NumCPU())
	b.sheet.note(othersShare+p.name, percent, max(0, share))
	fmt.Fprintf(os.Stderr, "%s %d/%d: %.0f s, others took %.0f %% of the machine\n", p.name, b.sheet.repeat+1, b.repeats, took.Seconds(), share)
	return err
}

// partLimit is how long one measurement may take. After this time, a measurement that hangs is ended. The longest
// measurement takes a few minutes. The first repeat of this measurement also makes the database, which takes some more
// minutes.
const partLimit = 20 * time.Minute

// first reports whether this is the first repeat. Only the first repeat does slow measurements that no target needs.
func (b *bench) first() bool { return b.sheet.repeat == 0 }

// skips reports whether this repeat leaves out a database. Only the first repeat measures a file with 10 million
// messages, because the file has several gigabytes and each measurement copies it.
func (b *bench) skips(engine string, pending int) bool {
	return engine == sqlite && pending > 1_000_000 && !b.first()
}

// othersShare is the beginning of the names of figures that say how reliable the other figures are.
const othersShare = "the machine's share that others had during "

func (b *bench) wanted(name string) bool {
	for word := range strings.SplitSeq(b.only, ",") {
		if strings.Contains(name, strings.TrimSpace(word)) {
			return true
		}
	}
	return false
}
