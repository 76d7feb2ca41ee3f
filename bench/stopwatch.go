package main

import (
	"database/sql"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// stopwatch measures the processor time that work on a database takes.
type stopwatch struct {
	b       *bench
	server  int // id of the database's process; 0: there is none
	own     time.Duration
	all     usage
	sampled *samples // nil: the flag for samples is not set
}

func (b *bench) watch(engine string) stopwatch {
	w := stopwatch{b: b}
	switch engine {
	case postgres:
		w.server = b.machine.postmaster
	case redis:
		w.server = b.redis.pid()
	}
	if b.backends && engine == postgres && w.server > 0 {
		w.sampled = sample(b.address)
	}
	w.own, w.all = ownCPU(), childrenCPU(w.server)
	return w
}

// effort is the average processor time of one thing, in microseconds.
type effort struct {
	own, database float64
	served        bool // the database has its own processes, like PostgreSQL
}

// stop returns the average processor time of one thing, if n things were done since the stopwatch started.
func (w stopwatch) stop(name string, n int) (e effort) {
	own, all := ownCPU(), childrenCPU(w.server)
	e = effort{own: (own - w.own).Seconds() * 1e6 / float64(n), database: (all.total() - w.all.total()).Seconds() * 1e6 / float64(n), served: w.server > 0}
	if w.sampled != nil {
		w.backends(name, all, n)
	}
	return e
}

// note stops the stopwatch and writes the result into the sheet.
func (w stopwatch) note(name string, n int) { w.b.sheet.noteEffort(name, w.stop(name, n)) }

// backends prints which of PostgreSQL's processes used the time.
func (w stopwatch) backends(name string, all usage, n int) {
	names := w.sampled.end()
	names[0], names[w.server] = "ended meanwhile", "postmaster"
	spent := func(pid int) time.Duration { return all[pid] - w.all[pid] }
	pids := slices.SortedFunc(maps.Keys(all), func(a, b int) int { return int(spent(b) - spent(a)) })
	fmt.Fprintf(os.Stderr, "%s, µs of each of PostgreSQL's processes:\n", name)
	for _, pid := range pids {
		if d := spent(pid); d > 0 {
			fmt.Fprintf(os.Stderr, "  %7.2f  %s\n", d.Seconds()*1e6/float64(n), names[pid])
		}
	}
}

// samples counts what each of PostgreSQL's processes was doing. This shows which process does which work.
type samples struct {
	stop chan struct{}
	done sync.WaitGroup
	seen map[int]map[string]int
}

// sample begins to take samples. This costs a little processor time.
func sample(address string) *samples {
	s := &samples{stop: make(chan struct{}), seen: map[int]map[string]int{}}
	s.done.Go(func() {
		db, err := sql.Open("pgx", address)
		if err != nil {
			return
		}
		defer db.Close()
		for {
			s.look(db)
			select {
			case <-s.stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return s
}

func (s *samples) look(db *sql.DB) {
	rows, err := db.Query(`select pid, backend_type, ltrim(left(regexp_replace(query, '\s+', ' ', 'g'), 60)) from pg_stat_activity where pid <> pg_backend_pid()`)
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		var kind, query string
		if rows.Scan(&pid, &kind, &query) != nil {
			return
		}
		if s.seen[pid] == nil {
			s.seen[pid] = map[string]int{}
		}
		name := kind + " " + query
		s.seen[pid][name]++
		if query == "commit" || query == "begin" {
			s.seen[pid][name] = 0 // every process does this, so it does not distinguish processes
		}
	}
}

// end stops the samples, and returns what each process did most of the time.
func (s *samples) end() map[int]string {
	close(s.stop)
	s.done.Wait()
	names := map[int]string{}
	for pid, seen := range s.seen {
		slowest := -1
		for name, n := range seen {
			if n > slowest {
				names[pid], slowest = name, n
			}
		}
	}
	return names
}
