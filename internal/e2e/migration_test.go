//go:build e2e

package e2e

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// befores are programs of earlier versions, and the version of their tables.
var befores = map[string]struct {
	commit string
	schema int
}{
	"of the first tables": {"655358c", 1},
	"0.1.0":               {"02f1f5f2", 19},
}

// binaryBefore builds the program of an earlier version. It needs the git repository, which has the sources.
func binaryBefore(t *testing.T, before string) string {
	t.Helper()
	root := filepath.Join("..", "..")
	if err := exec.Command("git", "-C", root, "cat-file", "-e", before+"^{commit}").Run(); err != nil {
		t.Skipf("the commit %s is not here: %v", before, err)
	}
	dir := t.TempDir()
	tree, err := exec.Command("git", "-C", root, "archive", before).Output()
	if err != nil {
		t.Fatal(err)
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(tree)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "before"), "./cmd/puntuale")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "before")
}

// TestUpgradeUnderLoad: a server of this version brings the tables up to date while a server of an earlier version
// runs. Both work side by side. A second program of the earlier version refuses to start on the new tables. Then the
// old server is stopped. No call fails, and the ledgers agree.
func TestUpgradeUnderLoad(t *testing.T) {
	for name, before := range befores {
		t.Run(name, func(t *testing.T) { upgradeUnderLoad(t, before.commit, before.schema) })
	}
}

func upgradeUnderLoad(t *testing.T, before string, tables int) {
	database := postgres(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	old := prepare(t, database, "--lease", lease().String(), "--sandbox-latency", "20ms")
	old.program = binaryBefore(t, before)
	old.start()
	host := strings.TrimPrefix(old.base, "http://")
	document.others.Store(host, true)
	t.Cleanup(func() { document.others.Delete(host) }) // another server may get the port
	fresh := prepare(t, database, "--lease", lease().String(), "--sandbox-latency", "20ms")
	l := newLoad(seed, loadTenants(t, old.base, createPartnerBy(t, old.program, database), 6), old.base, fresh.base)
	l.uncounted = true
	time.Sleep(2 * time.Second)
	f := &fleet{t: t, database: database, lease: lease(), nodes: []*server{old, fresh}}
	schema := func() int { return f.number("select max(version_id) from puntuale_version") }
	if n := schema(); n != tables {
		t.Fatalf("the tables have version %d before the upgrade", n)
	}
	fresh.start()
	if n := schema(); n <= tables {
		t.Errorf("the tables have version %d after the upgrade", n)
	}
	f.settled()
	time.Sleep(3 * time.Second)
	late := prepare(t, database)
	if out, err := exec.Command(old.program, late.args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "newer") {
		t.Errorf("the version before starts on newer tables: %v\n%s", err, out)
	}
	if code := old.terminate(25 * time.Second); code != 0 {
		t.Errorf("the version before ended with %d", code)
	}
	time.Sleep(2 * time.Second)
	l.end()
	l.verify(t, fresh.base, pick(15*time.Second, 5*time.Second))
}
