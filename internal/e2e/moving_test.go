//go:build e2e

package e2e

import (
	"database/sql"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMovingUp moves an installation from SQLite to PostgreSQL while many of its messages are due within seconds. Every
// message that was acknowledged before the move leaves exactly once, from one of the two installations.
func TestMovingUp(t *testing.T) {
	beside(t)
	up := postgres(t)
	moved(t, filepath.Join(t.TempDir(), "puntuale.db"), up, false)
}

// TestMovingAfterCrash moves the data of a killed server. Some attempts have no answer.
func TestMovingAfterCrash(t *testing.T) {
	beside(t)
	up := postgres(t)
	moved(t, filepath.Join(t.TempDir(), "puntuale.db"), up, true, "--sandbox-latency", "300ms")
}

// TestMovingDown moves an installation from PostgreSQL to SQLite.
func TestMovingDown(t *testing.T) {
	beside(t)
	moved(t, postgres(t), filepath.Join(t.TempDir(), "puntuale.db"), false)
}

func moved(t *testing.T, from, to string, killed bool, flags ...string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	old := serve(t, from, flags...)
	tenants := loadTenants(t, old.base, createPartner(t, from), 3)
	l := newLoad(seed, tenants, old.base)
	time.Sleep(2 * time.Second)
	l.end() // many messages are due within the next seconds
	first := &caller{load: l, random: rand.New(rand.NewPCG(seed, 0)), name: "first", phone: "+393479900000", tenant: tenants[0]}
	l.book = append(l.book, first.start()...)
	before := must(t, "GET", old.base+"/api/sandbox/messages", tenants[0].key, nil)
	again := func(base string) string {
		a := must(t, "POST", base+"/api/start/"+first.tenant.sequence, first.tenant.key,
			map[string]any{"phone": first.phone, "n": first.name}, "Idempotency-Key", first.name)
		return a.header.Get("Idempotent-Replayed") + string(a.body)
	}
	answered := again(old.base)
	if killed {
		old.kill()
	} else if code := old.terminate(25 * time.Second); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}

	file := filepath.Join(t.TempDir(), "puntuale.gz")
	command(t, "export", "--final", "--to", file, "--data", t.TempDir(), "--database", databaseFlag(from))
	command(t, "import", "--from", file, "--data", t.TempDir(), "--database", databaseFlag(to))

	if killed && count(t, to, "select count(*) from message where intent > 0") == 0 {
		t.Error("nothing was in flight, so this shows nothing of it")
	}
	more := keyOf(t, from)
	fresh := serve(t, to, more...)
	if got := again(fresh.base); got != answered || !strings.HasPrefix(got, "true") {
		t.Errorf("the first call again: %s, before: %s", got, answered)
	}
	if n := len(ledger(t, fresh.base, tenants[0].key)); len(before.body) > 100 && n == 0 {
		t.Error("the network's ledger did not move")
	}
	l.verify(t, fresh.base, 60*time.Second)
}

// TestImportKilled: after an import was killed with SIGKILL, the database is empty, and the import can be repeated.
func TestImportKilled(t *testing.T) {
	beside(t)
	from := filepath.Join(t.TempDir(), "puntuale.db")
	createPartner(t, from)
	db, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`insert into event (client_id, message_id, at, kind, detail)
 with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select 1, i, i, 'x', hex(randomblob(100)) from n`); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "puntuale.gz")
	command(t, "export", "--to", name, "--data", t.TempDir(), "--database", databaseFlag(from))
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	databases(t, func(t *testing.T, to string) {
		args := []string{"import", "--copy", "--data", t.TempDir(), "--database", databaseFlag(to)}
		half := exec.Command(binary, append(args, "--from", "-")...)
		in, err := half.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := half.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(file[:len(file)-100]); err != nil { // the file has several megabytes and the pipe's buffer is small, so the import has read most of the file
			t.Fatal(err)
		}
		if err := half.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := half.Wait(); err == nil {
			t.Fatal("it was done before it was killed")
		}
		eventually(t, 10*time.Second, "the import is done again", func() bool { // PostgreSQL may notice the kill a little later
			return exec.Command(binary, append(args, "--from", name)...).Run() == nil
		})
		out, err := exec.Command(binary, append(args, "--from", name)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "holds an installation already") {
			t.Errorf("a third time: %v, %s", err, out)
		}
	})
}

// count returns the number that a query on a PostgreSQL database returns.
func count(t *testing.T, database, query string) (n int) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// keyOf returns the flags for the key file that a SQLite server made.
func keyOf(t *testing.T, database string) []string {
	t.Helper()
	if _, err := os.Stat(database + ".key"); err != nil {
		return nil
	}
	return []string{"--key-file", database + ".key"}
}
