//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Promised times while the database is away. Without PUNTUALE_LONG=1, these times are longer, because the machine may
// be busy.
var (
	refusedWithin = pick(3*time.Second, time.Second)
	wellWithin    = pick(10*time.Second, 5*time.Second)
)

// troubled is a server under load, on a PostgreSQL with a problem.
type troubled struct {
	t  *testing.T
	pg *dbServer
	*server
	load *load
	who  tenant
	next int
}

func newTroubled(t *testing.T, pg *dbServer) *troubled {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := &troubled{t: t, pg: pg, server: serve(t, address(pg), "--lease", lease().String())}
	key := createPartner(t, address(pg))
	x.who = createTenant(t, x.base, key, "full", step("prova", 0, ""))
	x.load = newLoad(seed, loadTenants(t, x.base, key, 3), x.base)
	time.Sleep(2 * time.Second)
	return x
}

// asks makes one call and returns its status. It fails the test if the answer takes longer than a refusal may take.
func (x *troubled) asks() int {
	x.t.Helper()
	x.next++
	began := time.Now()
	a, err := call("POST", x.base+"/api/start/"+x.who.sequence, x.who.key, map[string]any{"phone": fmt.Sprintf("+39348%07d", x.next)})
	took := time.Since(began)
	if err != nil {
		x.t.Errorf("no answer: %v", err)
		return 0
	}
	if took > refusedWithin {
		x.t.Errorf("%d came after %v", a.status, took)
	}
	switch {
	case a.status == http.StatusServiceUnavailable:
		if a.header.Get("Retry-After") == "" {
			x.t.Errorf("503 without Retry-After: %s", a.body)
		}
	case a.status != http.StatusOK:
		x.t.Errorf("%d %s", a.status, a.body)
	}
	return a.status
}

func (x *troubled) ready() bool {
	a, err := call("GET", x.base+"/readyz", "", nil)
	return err == nil && a.status == http.StatusOK
}

// away watches the server while the database is away. The server must refuse calls, and say that it is not ready.
func (x *troubled) away(lasts time.Duration) {
	x.t.Helper()
	deadline := time.Now().Add(lasts)
	eventually(x.t, refusedWithin+2*time.Second, "not ready while the database is away", func() bool { return !x.ready() })
	for time.Now().Before(deadline) {
		if status := x.asks(); status == http.StatusOK {
			x.t.Error("a call was accepted while the database was away")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if x.ready() {
		x.t.Error("ready while the database is away")
	}
}

// back measures how long the server needs to work again after the database is back.
func (x *troubled) back() {
	x.t.Helper()
	began := time.Now()
	eventually(x.t, 30*time.Second, "all is well again", func() bool { return x.ready() && x.asks() == http.StatusOK })
	took := time.Since(began)
	x.t.Logf("all was well %v after the database", took.Round(time.Millisecond))
	if took > wellWithin {
		x.t.Errorf("that is longer than %v", wellWithin)
	}
}

// agrees ends the load, and checks that the ledgers agree.
func (x *troubled) agrees(late time.Duration) {
	x.t.Helper()
	time.Sleep(2 * time.Second)
	x.load.end()
	x.load.verify(x.t, x.base, late)
}

// TestDatabaseTroubleUnderLoad: while PostgreSQL is away, calls are refused immediately and nothing leaves. When
// PostgreSQL is back, everything works again, and the ledgers agree.
func TestDatabaseTroubleUnderLoad(t *testing.T) {
	outage := pick(6*time.Second, time.Minute)
	for name, trouble := range map[string]func(x *troubled){
		"restart": func(x *troubled) {
			x.pg.stop("fast")
			x.pg.start()
		},
		"immediate stop": func(x *troubled) {
			x.pg.stop("immediate")
			x.away(time.Second)
			x.pg.start()
		},
		"killed": func(x *troubled) {
			x.pg.kill()
			x.away(time.Second)
			x.pg.start()
		},
		"outage": func(x *troubled) {
			x.pg.stop("immediate")
			x.away(outage)
			x.pg.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTroubled(t, newDBServer(t))
			for range pick(1, 3) {
				trouble(x)
				x.back()
			}
			x.agrees(outage + 20*time.Second)
		})
	}
}

// TestDatabaseDiskFullUnderLoad: calls that need more room on the disk are refused, and accepted calls are kept. When
// there is room again, everything works. In this test, PostgreSQL's write-ahead log is on a different disk. If
// PostgreSQL cannot write its log, it stops; another test covers this case.
func TestDatabaseDiskFullUnderLoad(t *testing.T) {
	disk := t.TempDir()
	if err := os.Chmod(filepath.Dir(disk), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=128m,mode=0777", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("a small disk cannot be had here: %v %s", err, out)
	}
	// This cleanup is registered before the server's cleanup. Therefore it runs after the server's cleanup.
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	pg := newServerFolder(t, "shared_buffers=16MB")
	pg.initdb("--waldir", filepath.Join(pg.dir, "wal"))
	small := filepath.Join(disk, "base")
	for _, command := range [][]string{{"cp", "-a", filepath.Join(pg.data(), "base"), small}, {"rm", "-rf", filepath.Join(pg.data(), "base")},
		{"ln", "-s", small, filepath.Join(pg.data(), "base")}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", command, err, out)
		}
	}
	pg.start()
	x := newTroubled(t, pg)
	fill := filepath.Join(disk, "fill")
	full := make(chan struct{})
	go func() { // fills the disk as fast as possible
		defer close(full)
		f, err := os.Create(fill)
		if err != nil {
			return
		}
		defer f.Close()
		block := make([]byte, 4096)
		for deadline := time.Now().Add(pick(5*time.Second, 30*time.Second)); time.Now().Before(deadline); {
			if _, err := f.Write(block); err != nil {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	refused := 0
	for running := true; running; {
		select {
		case <-full:
			running = false
		default:
			if x.asks() == http.StatusServiceUnavailable {
				refused++
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls were refused", refused)
	if refused == 0 {
		t.Error("the disk was not full")
	}
	x.back()
	x.agrees(time.Minute)
}

// TestPartitionUnderLoad cuts off one of three servers from the database. This server refuses calls and is not ready.
// The other servers take over its sessions. When the network works again, the server gets sessions again.
func TestPartitionUnderLoad(t *testing.T) {
	for name, cut := range map[string]func(*proxy){"swallowed": (*proxy).swallow, "reset": (*proxy).reset} {
		t.Run(name, func(t *testing.T) {
			database := postgres(t)
			f := newFleet(t, database, 2, 0, lease())
			p := newProxy(t, database)
			third := serve(t, p.address, "--lease", lease().String(), "--sandbox-latency", "20ms")
			two, three := f.nodes, append(slices.Clone(f.nodes), third)
			key := createPartner(t, database, "--another")
			x := &troubled{t: t, server: third, who: createTenant(t, third.base, key, "full", step("prova", 0, ""))}
			x.load = newLoad(f.random.Uint64(), loadTenants(t, third.base, key, 6), third.base)
			f.nodes = three
			f.settled()
			for range pick(1, 3) {
				cut(p)
				x.away(lease() + 4*time.Second)
				f.nodes = two
				f.settled() // the other servers own the sessions now
				p.heal()
				x.back()
				f.nodes = three
				f.settled()
			}
			late := lease() + 25*time.Second
			x.agrees(late)
			f.load.end()
			f.load.verify(t, f.nodes[0].base, late)
		})
	}
}

// TestCommitInDoubt: the network fails during COMMIT. The answer says that the call may have been accepted, and that a
// repeat with the same key shows whether it was accepted. The test then sends such a repeat.
func TestCommitInDoubt(t *testing.T) {
	for name, how := range map[string]int{"before": cutBefore, "after": cutAfter} {
		t.Run(name, func(t *testing.T) {
			database := postgres(t)
			p := newProxy(t, database)
			s := serve(t, p.address)
			who := createTenant(t, s.base, createPartner(t, database), "full", step("prova", 1, "hours"))
			begin := func() (answer, error) {
				return call("POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393471234567"}, "Idempotency-Key", "k")
			}
			p.cutAt(how)
			a, err := begin()
			if err != nil || a.status != http.StatusServiceUnavailable {
				t.Fatalf("%d %s %v", a.status, a.body, err)
			}
			var problem struct {
				Detail string `json:"detail"`
			}
			if err := json.Unmarshal(a.body, &problem); err != nil || !strings.Contains(problem.Detail, "may have been done") ||
				!strings.Contains(problem.Detail, "Idempotency-Key") || a.header.Get("Retry-After") == "" {
				t.Errorf("%v %s", a.header, a.body)
			}
			p.heal()
			eventually(t, wellWithin, "the call is answered", func() bool {
				a, err = begin()
				return err == nil && a.status == http.StatusOK
			})
			if replayed := a.header.Get("Idempotent-Replayed") == "true"; replayed != (how == cutAfter) {
				t.Errorf("replayed: %v", replayed)
			}
			f := &fleet{t: t, database: database}
			if n := f.number("select count(*) from run"); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	}
}
