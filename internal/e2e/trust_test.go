//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// filled runs a server once on a new SQLite file, so that the file contains data. It returns the file's path.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, path)
	createTenant(t, s.base, createPartner(t, path), "full", step("ciao", 0, ""))
	if code := s.terminate(20 * time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return path
}

// refuses starts the server on a database. The server must soon end by itself, and print one clear sentence.
func refuses(t *testing.T, database string, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "serve", "--sandbox", "--addr", freeAddr(t), "--data", t.TempDir(),
		"--database", databaseFlag(database)).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("it serves all the same:\n%s", out)
	}
	if err == nil {
		t.Errorf("exit code 0:\n%s", out)
	}
	text := strings.ToLower(string(out))
	if strings.Contains(text, "goroutine ") {
		t.Errorf("a panic instead of a sentence:\n%s", out)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("the refusal does not say %q:\n%s", w, out)
		}
	}
}

func TestRefusesZeroLengthFile(t *testing.T) {
	path := filled(t)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	refuses(t, path, "empty")
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file was touched: %v %v", info, err)
	}
}

func TestRefusesCorruptPage(t *testing.T) {
	path := filled(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	garbage := []byte(strings.Repeat("\xff\x00garbage", 100))
	for at := int64(4096); at+4096 < info.Size(); at += 4096 { // damages every page except the first one; whichever page the server reads next is damaged
		if _, err := f.WriteAt(garbage, at); err != nil {
			t.Fatal(err)
		}
	}
	refuses(t, path, "corrupt")
}

func TestRefusesNewerSchema(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filled(t)
		bumpSchema(t, "sqlite", path)
		refuses(t, path, "newer")
	})
	t.Run("postgres", func(t *testing.T) {
		database := postgres(t)
		s := serve(t, database)
		if code := s.terminate(20 * time.Second); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		bumpSchema(t, "pgx", database)
		refuses(t, database, "newer")
	})
}

func bumpSchema(t *testing.T, driver, database string) {
	t.Helper()
	db, err := sql.Open(driver, database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("insert into puntuale_version (version_id, is_applied) values (99999, $1)", true); err != nil {
		t.Fatal(err)
	}
}

func TestRefusesLesserDurability(t *testing.T) {
	path := filled(t)
	refuses(t, path+"?_pragma=synchronous(normal)", "synchronous")
}

func TestRefusesSecondDispatcher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "puntuale.db")
	serve(t, path)
	refuses(t, path, "another process")
}

// TestDamageIsMetAtAnySize: a start does not read a large file to its end. But after a call has found damage, the
// server accepts no more calls. A later start refuses the file.
func TestDamageIsMetAtAnySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, path)
	who := createTenant(t, s.base, createPartner(t, path), "full", step("ciao", 0, ""))
	if code := s.terminate(20 * time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`insert into sandbox_message (client_id, message_id, connector_id, phone, content, received_at)
 with recursive n(i) as (select 1 union all select i + 1 from n where i < 250)
 select c.id, i, 'x' || i, '+39', json_object('text', hex(randomblob(50000))), 1 from n, client c`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if out := command(t, "check", "--database", databaseFlag(path)); !strings.Contains(out, "is whole") {
		t.Errorf("check printed %q", out)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 10<<20), 12<<20); err != nil {
		t.Fatal(err)
	}
	s.start()
	a, err := call("GET", s.base+"/api/sandbox/messages?limit=1000", who.key, nil)
	if err != nil || a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), `"code":"store_damaged"`) {
		t.Errorf("the call is answered with %d %s (%v)", a.status, a.body, err)
	}
	select {
	case err := <-s.exited:
		s.exited <- err
		if code := s.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(tail(s.log, 2000), "the database file is damaged") {
			t.Errorf("it ended with %d:\n%s", code, tail(s.log, 2000))
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	refuses(t, path, "is damaged")
	if out, err := exec.Command(binary, "check", "--database", databaseFlag(path)).CombinedOutput(); err == nil || !strings.Contains(string(out), "is damaged") {
		t.Errorf("check: %v %s", err, out)
	}
}
