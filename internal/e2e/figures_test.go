//go:build e2e && figures

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// conditions logs the machine, the lease and the database's folder. The tests in this file print figures (make
// figures), and most of the figures have no bounds. Servers, database and callers share the machine.

func conditions(t *testing.T) {
	t.Helper()
	t.Logf("%d CPUs, lease %v, PostgreSQL in %s", runtime.NumCPU(), shipped, os.Getenv("PUNTUALE_TEST_POSTGRES"))
}

// TestFigureTakeover kills one of three nodes, fifty times. It prints how long it takes until each session of the
// killed node has sent again. Each session has four messages due each second.
func TestFigureTakeover(t *testing.T) {
	conditions(t)
	const fleets, kills = 5, 10
	var mu sync.Mutex
	var took []time.Duration
	t.Run("fleets", func(t *testing.T) {
		for n := range fleets {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				f := newStream(t, newCluster(t).address)
				for n := 0; n < kills; {
					d := f.takeover()
					if d < time.Second {
						continue // the killed node had no sessions
					}
					n++
					mu.Lock()
					took = append(took, d)
					mu.Unlock()
				}
			})
		}
	})
	slices.Sort(took)
	t.Logf("TAKEOVER after kill -9: %d kills, p50 %v, p90 %v, max %v", len(took), quantile(took, 0.5), quantile(took, 0.9), quantile(took, 1))
	if worst := quantile(took, 1); worst > 17*time.Second {
		t.Errorf("%v, more than 17 s", worst)
	}
}

// stream is three nodes with twelve sessions. Each session has a message due every 250 ms.
type stream struct {
	*fleet
	callers *load
}

func newStream(t *testing.T, database string) *stream {
	f := &fleet{t: t, database: database, lease: shipped, random: rand.New(rand.NewPCG(rand.Uint64(), 0))}
	l := &load{stop: make(chan struct{})}
	for range 3 {
		s := serve(t, database)
		f.nodes = append(f.nodes, s)
		l.bases = append(l.bases, s.base)
	}
	var steps []any
	for i := range 50 {
		steps = append(steps, step("{{n}}", i, "seconds"))
	}
	partner := createPartner(t, database)
	for i := range 12 {
		who := createTenant(t, f.nodes[0].base, partner, "full", steps...)
		f.tenants = append(f.tenants, who)
		c := &caller{load: l, random: rand.New(rand.NewPCG(f.random.Uint64(), 0)), tenant: who}
		l.workers.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				c.until("POST", "/api/start/"+who.sequence, map[string]any{"phone": fmt.Sprintf("+39347%02d%05d", i, n), "n": key}, "Idempotency-Key", key)
				rest := 250 * time.Millisecond
				if n%4 == 3 {
					rest = 49*time.Second + 250*time.Millisecond // the first four runs of a session last this long
				}
				if !c.rest(rest) {
					return
				}
			}
		})
	}
	t.Cleanup(l.end)
	f.settled()
	time.Sleep(shipped)
	return &stream{f, l}
}

// takeover kills a node. It returns how long it took until every session of that node had sent again.
func (f *stream) takeover() (took time.Duration) {
	f.t.Helper()
	s := f.any()
	killed := time.Now()
	s.kill()
	time.Sleep(shipped / 2)
	eventually(f.t, 30*time.Second, "every session sends again", func() bool {
		time.Sleep(500 * time.Millisecond)
		took = 0
		for _, who := range f.tenants {
			silence, over := f.silence(f.other(s), who, killed)
			if !over {
				return false
			}
			took = max(took, silence)
		}
		return true
	})
	s.start()
	f.settled()
	time.Sleep(shipped) // in this time, the restarted node gets its sessions back
	return took
}

func (f *stream) other(s *server) *server {
	for _, o := range f.nodes {
		if o != s {
			return o
		}
	}
	return nil
}

// silence returns how long after the kill a client's session sent again. over is false if the session has not sent yet.
func (f *stream) silence(s *server, who tenant, killed time.Time) (took time.Duration, over bool) {
	f.t.Helper()
	for _, r := range ledger(f.t, s.base, who.key) {
		at, err := time.Parse(stamp, r.Received)
		if err != nil {
			f.t.Fatal(err)
		}
		if at.After(killed) {
			return at.Sub(killed), true
		}
	}
	return 0, false
}

// TestFigureRollingRestart restarts three nodes under load, one after the other, ten times.
func TestFigureRollingRestart(t *testing.T) {
	conditions(t)
	f := newFleet(t, postgres(t), 3, 0, shipped)
	began := time.Now()
	for range 10 {
		rollingRestart(f)
		time.Sleep(time.Second)
	}
	took := time.Since(began)
	f.load.end()
	late := f.load.verify(t, f.load.bases[0], 5*time.Second)
	t.Logf("ROLLING RESTART, 30 restarts in %v: %d messages, late p50 %v, p99 %v, max %v",
		took.Round(time.Second), len(late), quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1))
}

// TestFigureThroughput: callers start runs as fast as the server answers. All messages are due at the same time. The
// test prints how fast the runs are started and how fast the messages leave.
func TestFigureThroughput(t *testing.T) {
	conditions(t)
	t.Run("1 node on SQLite", func(t *testing.T) { throughput(t, filepath.Join(t.TempDir(), "puntuale.db"), 1) })
	t.Run("1 node on PostgreSQL", func(t *testing.T) { throughput(t, postgres(t), 1) })
	t.Run("3 nodes on PostgreSQL", func(t *testing.T) { throughput(t, postgres(t), 3) })
}

func throughput(t *testing.T, database string, nodes int) {
	const calling = 10 * time.Second
	f := &fleet{t: t, database: database, lease: shipped}
	for range nodes {
		f.nodes = append(f.nodes, serve(t, database))
	}
	partner := createPartner(t, database)
	timing := map[string]any{"anchor": "due", "offset": map[string]any{"amount": 0}}
	for range 24 {
		f.tenants = append(f.tenants, createTenant(t, f.nodes[0].base, partner, "full", map[string]any{"text": "ciao", "timing": timing}))
	}
	f.settled()
	time.Sleep(shipped)
	began := time.Now()
	due := began.Add(calling + 5*time.Second).UTC().Truncate(time.Second)
	var calls atomic.Int64
	var workers sync.WaitGroup
	for w := range 64 {
		workers.Go(func() {
			for n := 0; time.Since(began) < calling; n++ {
				who := f.tenants[(w+n)%len(f.tenants)]
				a, err := call("POST", f.nodes[(w+n)%nodes].base+"/api/start/"+who.sequence, who.key,
					map[string]any{"phone": fmt.Sprintf("+39347%02d%05d", w, n), "due": due.Format(time.RFC3339)})
				if err != nil || a.status != http.StatusOK {
					t.Errorf("%v %d %s", err, a.status, a.body)
					return
				}
				calls.Add(1)
			}
		})
	}
	workers.Wait()
	rate := float64(calls.Load()) / time.Since(began).Seconds()
	time.Sleep(time.Until(due))
	eventually(t, 2*time.Minute, "all left", func() bool {
		time.Sleep(500 * time.Millisecond)
		return f.number("select count(*) from message where state = 0") == 0
	})
	var last time.Time
	sent := 0
	for _, who := range f.tenants {
		for _, r := range ledger(t, f.nodes[0].base, who.key) {
			at, err := time.Parse(stamp, r.Received)
			if err != nil {
				t.Fatal(err)
			}
			sent++
			if at.After(last) {
				last = at
			}
		}
	}
	if sent != int(calls.Load()) {
		t.Errorf("%d calls, %d messages arrived", calls.Load(), sent)
	}
	t.Logf("THROUGHPUT, %s: %.0f start calls a second over HTTP (64 callers); %d messages due at once left in %v, %.0f a second",
		strings.TrimPrefix(t.Name(), "TestFigureThroughput/"), rate, sent, last.Sub(due).Round(time.Millisecond), float64(sent)/last.Sub(due).Seconds())
}
