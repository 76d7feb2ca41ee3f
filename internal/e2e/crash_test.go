//go:build e2e

package e2e

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// TestKilledUnderLoad kills the server with SIGKILL several times, while callers make calls and messages leave.
func TestKilledUnderLoad(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		s := serve(t, database, "--lease", "2s")
		l := newLoad(seed, loadTenants(t, s.base, createPartner(t, database), 3), s.base)
		for range 6 {
			time.Sleep(time.Duration(300+random.IntN(1200)) * time.Millisecond)
			s.kill()
			s.start()
		}
		time.Sleep(500 * time.Millisecond)
		l.end()
		l.verify(t, s.base, 20*time.Second)
	})
}

// TestTerminatedUnderLoad stops the server with SIGTERM. The server's exit code is 0, and no message becomes uncertain.
func TestTerminatedUnderLoad(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		s := serve(t, database)
		l := newLoad(seed, loadTenants(t, s.base, createPartner(t, database), 3), s.base)
		for range 3 {
			time.Sleep(700 * time.Millisecond)
			if code := s.terminate(25 * time.Second); code != 0 {
				t.Errorf("SIGTERM: exit code %d", code)
			}
			s.start()
		}
		l.end()
		l.verify(t, s.base, 10*time.Second)
	})
}

// TestRestartResumesAtOnce: on SQLite, a restarted server does not wait for the lease of the killed process.
func TestRestartResumesAtOnce(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "puntuale.db"), "--lease", "60s")
	who := createTenant(t, s.base, createPartner(t, s.database), "full", step("ciao", 2, "seconds"))
	must(t, "POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393471234567"})
	s.kill()
	s.start()
	eventually(t, 4*time.Second, "the message arrives", func() bool { return len(ledger(t, s.base, who.key)) == 1 })
}
