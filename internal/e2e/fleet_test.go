//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// long reports whether PUNTUALE_LONG=1 is set (make long). If it is set, the tests use the default lease, check the
// bounds that are promised for this lease, and cause each fault several times. If it is not set, the tests use short
// leases, and bounds that are wide enough for a busy machine.
var long = os.Getenv("PUNTUALE_LONG") == "1"

// pick returns the second value if PUNTUALE_LONG=1 is set, and the first value if it is not set.
func pick[T any](check, longRun T) T {
	if long {
		return longRun
	}
	return check
}

// shipped is the default lease of a server.
const shipped = 6 * time.Second

// lease returns the lease of the servers in these tests.
func lease() time.Duration { return pick(2*time.Second, shipped) }

// fleet is some servers on one database, under load.
type fleet struct {
	t        *testing.T
	database string
	random   *rand.Rand
	nodes    []*server
	tenants  []tenant
	load     *load
	pg       *cluster // the test's own PostgreSQL; nil: the test has none
	lease    time.Duration
}

// newFleet starts servers, and runs a load on the first ones. The last servers get no calls, and the argument spare is
// their number. newFleet returns after all servers own sessions. The simulated network answers slowly, so there are
// always messages in flight.
func newFleet(t *testing.T, database string, nodes, spare int, lease time.Duration) *fleet {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := &fleet{t: t, database: database, lease: lease, random: rand.New(rand.NewPCG(seed, 0))}
	for range nodes {
		f.join()
	}
	clients := 3
	if nodes > 1 {
		clients = 12 // each client has one session, so it is unlikely that a node gets none
	}
	var bases []string
	for _, s := range f.nodes[:nodes-spare] {
		bases = append(bases, s.base)
	}
	f.tenants = loadTenants(t, f.nodes[0].base, createPartner(t, database), clients)
	f.load = newLoad(seed, f.tenants, bases...)
	f.settled()
	time.Sleep(2 * time.Second)
	return f
}

// join starts one more node.
func (f *fleet) join() *server {
	s := serve(f.t, f.database, "--lease", f.lease.String(), "--sandbox-latency", "20ms")
	f.nodes = append(f.nodes, s)
	return s
}

// any returns one of the nodes, chosen at random.
func (f *fleet) any() *server { return f.nodes[f.random.IntN(len(f.nodes))] }

// await waits for a condition that the fleet must reach within a few leases.
func (f *fleet) await(what string, holds func() bool) {
	f.t.Helper()
	eventually(f.t, 20*time.Second+3*f.lease, what, holds)
}

// open opens the fleet's database.
func (f *fleet) open() *sql.DB {
	f.t.Helper()
	driver, address := "pgx", f.database
	if !strings.HasPrefix(address, "postgres") {
		driver = "sqlite"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		f.t.Fatal(err)
	}
	return db
}

// number returns the number that a query on the database returns.
func (f *fleet) number(query string) (n int) {
	f.t.Helper()
	db := f.open()
	defer db.Close()
	if err := db.QueryRowContext(f.t.Context(), query).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fleet) owners() int {
	return f.number("select count(distinct owner) from session where owner <> 0")
}

// settled waits until the fleet has exactly these nodes, and each session is owned by one of them.
func (f *fleet) settled() {
	f.t.Helper()
	f.await("the fleet is settled", func() bool {
		return f.number("select count(*) from node") == len(f.nodes) &&
			f.number("select count(*) from session where owner not in (select id from node)") == 0
	})
}

func (f *fleet) free() int { return f.number("select count(*) from session where owner = 0") }

// fault is a fault that happens to a fleet under load.
type fault struct {
	name   string
	on     []string // databases: "sqlite", "postgres", or "cluster", which is a PostgreSQL that the test may stop
	nodes  []int
	spare  int // number of nodes that get no calls, because they will end
	times  int // how many times the fault happens with PUNTUALE_LONG=1
	clean  bool
	happen func(f *fleet)
	late   time.Duration // how late a message may be; if the fault stops everything, the fault's duration is added
}

var faults = []fault{
	{name: "killed", on: []string{"postgres"}, nodes: []int{3}, times: 5, happen: killed, late: pick(15*time.Second, 17*time.Second)},
	{name: "stopped past its lease", on: []string{"sqlite", "postgres"}, nodes: []int{1}, times: 3, happen: stopped, late: pick(20*time.Second, 20*time.Second)},
	{name: "stopped past its lease", on: []string{"postgres"}, nodes: []int{3}, times: 5, happen: stopped, late: pick(15*time.Second, 17*time.Second)},
	// The simulated network's ledger is in the same database. Therefore an attempt and its repeat may both lose their
	// answers. The waits for the answers are 3 s and 12 s.
	{name: "database crashes", on: []string{"cluster"}, nodes: []int{1, 3}, times: 5, happen: databaseCrashes, late: 20 * time.Second},
	{name: "rolling restart", on: []string{"postgres"}, nodes: []int{3}, times: 3, clean: true, happen: rollingRestart, late: pick(10*time.Second, 5*time.Second)},
	{name: "a node joins", on: []string{"postgres"}, nodes: []int{2}, times: 1, clean: true, happen: joins, late: pick(10*time.Second, 5*time.Second)},
	{name: "a node leaves", on: []string{"postgres"}, nodes: []int{3}, spare: 1, times: 1, clean: true, happen: leaves, late: pick(10*time.Second, 5*time.Second)},
}

// TestFaultsUnderLoad: after each fault, three records agree: the ledger of acknowledged calls, the simulated network's
// ledger, and the final rows.
func TestFaultsUnderLoad(t *testing.T) {
	for _, fault := range faults {
		for _, database := range fault.on {
			for _, nodes := range fault.nodes {
				t.Run(fmt.Sprintf("%s, %d on %s", fault.name, nodes, database), func(t *testing.T) {
					if !fault.clean { // a slow machine may lose an answer, and then a message is repeated
						beside(t)
					}
					fault.run(t, database, nodes)
				})
			}
		}
	}
}

// TestManyFaultsUnderLoad: one fleet lives through many faults in turn, in an order that chance decides. Only "make long"
// has the time for it.
func TestManyFaultsUnderLoad(t *testing.T) {
	if !long {
		return
	}
	f := newFleet(t, postgres(t), 3, 0, lease())
	for range 60 {
		happens := [...]func(*fleet){killed, stopped, rollingRestart}[f.random.IntN(3)]
		happens(f)
		time.Sleep(2 * time.Second)
	}
	f.load.end()
	f.load.verify(t, f.load.bases[0], 20*time.Second)
}

func (x fault) run(t *testing.T, on string, nodes int) {
	var database string
	var pg *cluster
	switch on {
	case "sqlite":
		database = filepath.Join(t.TempDir(), "puntuale.db")
	case "postgres":
		database = postgres(t)
	case "cluster":
		pg = newCluster(t)
		database = pg.address
	}
	f := newFleet(t, database, nodes, x.spare, lease())
	f.pg = pg
	for range pick(1, x.times) {
		x.happen(f)
		time.Sleep(2 * time.Second)
	}
	f.load.end()
	f.load.verify(t, f.load.bases[0], x.late)
	if n := f.number("select count(*) from message where repeats > 0"); x.clean && n > 0 {
		t.Errorf("%d messages were repeated: their answers were lost", n)
	} else {
		t.Logf("%d messages were repeated", n)
	}
}

// killed kills one node with SIGKILL. The node starts again after the other nodes have taken over.
func killed(f *fleet) {
	s := f.any()
	s.kill()
	time.Sleep(f.lease + 3*time.Second)
	if n := f.free(); n > 0 {
		f.t.Errorf("%d sessions are nobody's %v after their node was killed", n, f.lease+3*time.Second)
	}
	s.start()
}

// stopped pauses a node until its lease is over and the other nodes own its sessions. When the node continues, it has
// not noticed this yet.
func stopped(f *fleet) {
	s := f.any()
	s.signal(syscall.SIGSTOP)
	time.Sleep(f.lease + 3*time.Second)
	s.signal(syscall.SIGCONT)
	f.settled()
}

func databaseCrashes(f *fleet) {
	f.pg.crash()
	time.Sleep(time.Duration(f.random.IntN(1500)) * time.Millisecond)
	f.pg.start()
}

// rollingRestart restarts the nodes one after the other. Each node must be ready before the next one is restarted.
func rollingRestart(f *fleet) {
	for _, s := range f.nodes {
		if code := s.terminate(25 * time.Second); code != 0 {
			f.t.Errorf("SIGTERM: exit code %d", code)
		}
		s.start()
	}
	f.settled()
}

// joins adds nodes until one of them gets sessions. By chance, a new node may get none.
func joins(f *fleet) {
	for before := f.owners(); f.owners() <= before; {
		f.join()
		time.Sleep(f.lease)
		f.settled()
	}
}

func leaves(f *fleet) {
	last := f.nodes[len(f.nodes)-1]
	f.nodes = f.nodes[:len(f.nodes)-1]
	if code := last.terminate(25 * time.Second); code != 0 {
		f.t.Errorf("SIGTERM: exit code %d", code)
	}
	began := time.Now()
	f.await("its sessions are the others'", func() bool { return f.free() == 0 })
	f.t.Logf("its sessions were the others' %v later", time.Since(began).Round(time.Millisecond))
}
