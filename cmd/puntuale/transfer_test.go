package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale/internal/localfile"
)

// TestMoving exports an installation to another folder: first as a copy, and then with --final. Then it reopens the
// first installation.
func TestMoving(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	says := func(code int, said string, args ...string) string {
		t.Helper()
		got, out, errs := term.runs("", args...)
		if got != code || !strings.Contains(errs, said) {
			t.Fatalf("puntuale %v: exit code %d, %s", args, got, errs)
		}
		return out
	}
	for _, args := range [][]string{{"export", "--to", "a.gz"}, {"reopen"}} {
		says(exitFailed, "there is no database", args...)
		if _, err := os.Stat(filepath.Join(term.dir, "puntuale-data")); err == nil {
			t.Errorf("puntuale %v made a folder", args)
		}
	}
	key := field(t, says(exitDone, "", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42", "--json"), "api_key")

	says(exitDone, "Exported", "export", "--to", "a.gz")
	if info, err := os.Stat(filepath.Join(term.dir, "a.gz")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	says(exitFailed, "exists already", "export", "--to", "a.gz")
	says(exitFailed, "no such file", "export", "--to", "nowhere/a.gz")
	says(exitFailed, "no such file", "import", "--from", "b.gz")
	says(exitFailed, "give --copy", "import", "--from", "a.gz", "--data", "copy")
	says(exitDone, "tables agree", "import", "--from", "a.gz", "--data", "copy", "--copy")
	says(exitFailed, "holds an installation already", "import", "--from", "a.gz", "--data", "copy", "--copy")
	if code, out, said := term.runs(key+"\n", "key", "rotate", "--data", "copy"); code != exitDone || !strings.Contains(out, "pk_") {
		t.Errorf("the old key: exit code %d, %s", code, said)
	}

	file := says(exitDone, "No server starts", "export", "--to", "-", "--final")
	says(exitFailed, "exported for good", "serve", "--addr", "127.0.0.1:0")
	says(exitFailed, "command reopen gives", "partner", "create", "--name", "B", "--email", "b@b", "--password", "una frase lunga 42")
	if code, _, said := term.runs(file, "import", "--from", "-", "--data", "moved"); code != exitDone {
		t.Errorf("from standard input: exit code %d, %s", code, said)
	}
	if code, _, said := term.runs(file[:len(file)-30], "import", "--from", "-", "--data", "cut"); code != exitFailed || !strings.Contains(said, "cut short") {
		t.Errorf("a file that was cut: exit code %d, %s", code, said)
	}
	says(exitDone, "may start again", "reopen")
	says(exitDone, "was not exported for good", "reopen")
	says(exitDone, "", "partner", "create", "--name", "B", "--email", "b@b", "--password", "una frase lunga 42")
	if rest, err := filepath.Glob(filepath.Join(term.dir, ".*")); err != nil || len(rest) > 0 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
}

// TestExportFails: if the disk is full, a failed export leaves neither a file nor a moved mark.
func TestExportFails(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42"); code != exitDone {
		t.Fatal(said)
	}
	term.stdout = full{}
	if code := term.run(context.Background(), []string{"export", "--to", "-", "--final"}); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	term.stdout = &term.out
	if code, _, said := term.runs("", "reopen"); code != exitDone || !strings.Contains(said, "was not exported") {
		t.Errorf("exit code %d, %s", code, said)
	}
}

// TestExportAfterAKilledOne: an export removes the unfinished file of an earlier, killed export to the same name. It
// does not remove a file that another export is still writing.
func TestExportAfterAKilledOne(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42"); code != exitDone {
		t.Fatal(said)
	}
	left := map[string]bool{".a.gz.unfinished-1": false, ".a.gz.unfinished-2": true, ".a.gz.unfinished-3": true, ".b.gz.unfinished-1": true, ".a.gz.1": true}
	for name := range left {
		term.file(t, name, "a part")
		if name != ".a.gz.unfinished-3" { // this file was begun just now
			old := time.Now().Add(-time.Hour)
			if err := os.Chtimes(filepath.Join(term.dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	free, err := localfile.Lock(filepath.Join(term.dir, ".a.gz.unfinished-2"))
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	if code, _, said := term.runs("", "export", "--to", "a.gz"); code != exitDone {
		t.Fatal(said)
	}
	for name, stays := range left {
		if _, err := os.Stat(filepath.Join(term.dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for to, says := range map[string]string{"b.gz": "interrupted; nothing was written", "-": "interrupted; what was written is no whole export"} {
		term.errs.Reset()
		if code := term.run(ctx, []string{"export", "--to", to}); code != exitFailed || !strings.Contains(term.errs.String(), says) {
			t.Errorf("exit code %d, %s", code, term.errs.String())
		}
	}
}

// full is a writer whose writes fail.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }
