//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// started is one start call as its caller knows it.
type started struct {
	tenant    tenant
	phone     string
	ids       []string
	cancelled map[string]bool // ids that a stop's 200 named
	stopped   bool            // a stop was tried, its answer perhaps lost
}

// load keeps workers starting and stopping sequences against the servers until it is told to end. Every call has its
// idempotency key and is repeated with it until it is answered, like a careful integrator's.
type load struct {
	bases   []string
	tenants []tenant
	stop    chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	starts []*started
	wrong  []string
	calls  int // requests sent, repeats included
}

func newLoad(workers int, seed uint64, tenants []tenant, bases ...string) *load {
	l := &load{bases: bases, tenants: tenants, stop: make(chan struct{})}
	for w := range workers {
		l.workers.Add(1)
		go l.work(w, rand.New(rand.NewPCG(seed, uint64(w))))
	}
	return l
}

func (l *load) end() {
	close(l.stop)
	l.workers.Wait()
}

func (l *load) ended() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) work(worker int, random *rand.Rand) {
	defer l.workers.Done()
	for n := 0; !l.ended(); n++ {
		s := &started{
			tenant: l.tenants[random.IntN(len(l.tenants))],
			phone:  fmt.Sprintf("+39347%02d%05d", worker, n),
		}
		a := l.until(random, "POST", "/api/start/"+s.tenant.sequence, s.tenant.key,
			map[string]any{"phone": s.phone, "n": fmt.Sprintf("%d-%d", worker, n)}, "Idempotency-Key", "start"+s.phone)
		var answer struct {
			ID []string `json:"id"`
		}
		if !l.read(a, &answer) {
			continue
		}
		s.ids = answer.ID
		if random.IntN(4) == 0 {
			l.stopRun(s, random)
		}
		l.mu.Lock()
		l.starts = append(l.starts, s)
		l.mu.Unlock()
	}
}

// stopRun stops until a stop is answered. An answer that was lost may have cancelled messages that no later answer names.
func (l *load) stopRun(s *started, random *rand.Rand) {
	s.stopped, s.cancelled = true, map[string]bool{}
	a := l.until(random, "POST", "/api/stop/"+s.tenant.sequence, s.tenant.key, map[string]any{"phone": s.phone})
	var answer struct {
		ID []string `json:"id"`
	}
	if l.read(a, &answer) {
		for _, id := range answer.ID {
			s.cancelled[id] = true
		}
	}
}

// until repeats a call on any of the servers until one answers it.
func (l *load) until(random *rand.Rand, method, path, key string, body any, header ...string) answer {
	for {
		l.mu.Lock()
		l.calls++
		l.mu.Unlock()
		a, err := call(method, l.bases[random.IntN(len(l.bases))]+path, key, body, header...)
		if err == nil && a.status != http.StatusServiceUnavailable {
			return a
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *load) read(a answer, v any) bool {
	if a.status != http.StatusOK {
		l.mu.Lock()
		l.wrong = append(l.wrong, fmt.Sprintf("%d %s", a.status, a.body))
		l.mu.Unlock()
		return false
	}
	return json.Unmarshal(a.body, v) == nil
}

// verify compares the ledger of acknowledged calls with the simulated network's and with the final rows, once all that
// is due has left: nothing lost, nothing twice, nothing cancelled sent.
func (l *load) verify(t *testing.T, base string) {
	t.Helper()
	for _, w := range l.wrong {
		t.Errorf("a call was answered: %s", w)
	}
	var sent, cancelled int
	for _, who := range l.tenants {
		var ids []string
		byID := map[string]*started{}
		for _, s := range l.starts {
			if s.tenant.key == who.key {
				if len(s.ids) != 3 {
					t.Fatalf("a start answered %d ids: %v", len(s.ids), s.ids)
				}
				for _, id := range s.ids {
					if byID[id] != nil {
						t.Errorf("message %s was acknowledged twice", id)
					}
					byID[id] = s
					ids = append(ids, id)
				}
			}
		}
		rows := l.settled(t, base, who, ids, byID)
		seen := map[string]int{} // by phone and text: a copy under any id counts
		inLedger := map[string]bool{}
		for _, r := range ledger(t, base, who.key) {
			seen[r.Phone+" "+r.Text]++
			inLedger[fmt.Sprint(r.ID)] = true
		}
		for what, n := range seen {
			if n > 1 {
				t.Errorf("the network shows %d copies of %s", n, what)
			}
		}
		for _, id := range ids {
			row, s := rows[id], byID[id]
			switch {
			case s.cancelled[id] && row.State != "CANCELLED":
				t.Errorf("message %s: the stop said cancelled, the row says %s", id, row.State)
			case row.State == "CANCELLED" && !s.stopped:
				t.Errorf("message %s is CANCELLED and nobody stopped it", id)
			case row.State == "CANCELLED" && inLedger[id]:
				t.Errorf("message %s is CANCELLED and the network has it", id)
			case row.State == "COMPLETED" && !inLedger[id]:
				t.Errorf("message %s is COMPLETED and the network does not have it", id)
			case row.State == "PENDING" && inLedger[id]:
				t.Errorf("message %s is PENDING (%s) and the network has it", id, row.Response)
			case row.State == "FAILED":
				t.Errorf("message %s FAILED: %s", id, row.Response)
			}
			switch row.State {
			case "COMPLETED":
				sent++
			case "CANCELLED":
				cancelled++
			}
		}
	}
	t.Logf("%d starts acknowledged in %d calls; %d messages sent once, %d cancelled", len(l.starts), l.calls, sent, cancelled)
	if sent == 0 || cancelled == 0 {
		t.Error("the load was too small to show anything")
	}
}

// settled waits until the two near steps of every run left or were cancelled; the third lies an hour ahead.
func (l *load) settled(t *testing.T, base string, who tenant, ids []string, byID map[string]*started) map[string]detail {
	t.Helper()
	var rows map[string]detail
	deadline := time.Now().Add(60 * time.Second)
	for {
		rows = details(t, base, who.key, ids)
		open := 0
		var example string
		for id, row := range rows {
			if row.State == "PENDING" && id != byID[id].ids[2] {
				open++
				example = fmt.Sprintf("%s %+v", id, row)
			}
		}
		if open == 0 {
			return rows
		}
		if time.Now().After(deadline) {
			t.Errorf("%d due messages are still PENDING, for example %s", open, example)
			return rows
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// loadTenants makes three clients whose sequence has a step at once, one after two seconds, one after an hour.
func loadTenants(t *testing.T, base, partnerKey string) []tenant {
	t.Helper()
	var tenants []tenant
	for range 3 {
		tenants = append(tenants, createTenant(t, base, partnerKey, "full",
			step("uno {{n}}", 0, ""), step("due {{n}}", 2, "seconds"), step("tre {{n}}", 1, "hours")))
	}
	return tenants
}

// TestKilledUnderLoad kills the server with SIGKILL again and again while calls are made and messages leave.
func TestKilledUnderLoad(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		s := serve(t, database, "--lease", "2s")
		tenants := loadTenants(t, s.base, createPartner(t, database))
		l := newLoad(8, seed, tenants, s.base)
		for range 6 {
			time.Sleep(time.Duration(300+random.IntN(1200)) * time.Millisecond)
			s.kill()
			s.start()
		}
		time.Sleep(500 * time.Millisecond)
		l.end()
		l.verify(t, s.base)
	})
}

// TestThreeProcessesOneKilled runs three processes on one PostgreSQL and kills one of them for good.
func TestThreeProcessesOneKilled(t *testing.T) {
	database := postgres(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	first := serve(t, database, "--lease", "2s")
	second := serve(t, database, "--lease", "2s")
	third := serve(t, database, "--lease", "2s")
	var tenants []tenant
	key := createPartner(t, database)
	for range 3 { // nine sessions, so that each process owns some
		tenants = append(tenants, loadTenants(t, first.base, key)...)
	}
	l := newLoad(8, seed, tenants, first.base, second.base, third.base)
	time.Sleep(2 * time.Second)
	second.kill()
	time.Sleep(4 * time.Second)
	l.end()
	l.verify(t, first.base)
}

// TestTerminatedUnderLoad stops the server cleanly: it exits with 0, and nothing is left uncertain.
func TestTerminatedUnderLoad(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		s := serve(t, database)
		tenants := loadTenants(t, s.base, createPartner(t, database))
		l := newLoad(8, seed, tenants, s.base)
		for range 3 {
			time.Sleep(700 * time.Millisecond)
			if code := s.terminate(25 * time.Second); code != 0 {
				t.Errorf("SIGTERM: exit code %d", code)
			}
			s.start()
		}
		l.end()
		l.verify(t, s.base)
	})
}

// TestRestartResumesAtOnce shows that a restart on SQLite does not wait for the lease of the process that was killed.
func TestRestartResumesAtOnce(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "puntuale.db"), "--lease", "60s")
	who := createTenant(t, s.base, createPartner(t, s.database), "full", step("ciao", 2, "seconds"))
	must(t, "POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393471234567"})
	s.kill()
	s.start()
	eventually(t, 4*time.Second, "the message arrives", func() bool { return len(ledger(t, s.base, who.key)) == 1 })
}
