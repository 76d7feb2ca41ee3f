package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackup restores a backup into a new installation. If a restore is impossible, the command says why.
func TestBackup(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	says := func(code int, said string, args ...string) string {
		t.Helper()
		got, out, errs := term.runs("", args...)
		if got != code || !strings.Contains(out+errs, said) {
			t.Fatalf("puntuale %v: exit code %d, %s%s", args, got, out, errs)
		}
		return out
	}
	in := func(name string) string { return filepath.Join(term.dir, name) }
	says(exitFailed, "nothing to back up", "backup", "--to", "b.zip")
	key := field(t, says(exitDone, "", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42", "--json"), "api_key")
	if err := os.WriteFile(in("puntuale-data/puntuale.db.key"), []byte(strings.Repeat("k", 44)), 0o600); err != nil {
		t.Fatal(err)
	}

	says(exitDone, "read them back", "backup", "--to", "b.zip")
	if info, err := os.Stat(in("b.zip")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	says(exitFailed, "exists already", "backup", "--to", "b.zip")
	says(exitDone, "The key is not in it", "backup", "--to", "b.zip", "--replace", "--without-key")
	says(exitDone, "The backup has no key", "restore", "--from", "b.zip", "--data", "keyless")
	says(exitDone, "The key is in it", "backup", "--to", "b.zip", "--replace")

	says(exitDone, "0 messages are due later", "restore", "--from", "b.zip", "--data", "two", "--hold")
	if text, err := os.ReadFile(in("two/puntuale.db.key")); err != nil || len(text) != 44 {
		t.Errorf("the key file: %q, %v", text, err)
	}
	if code, out, said := term.runs(key+"\n", "key", "rotate", "--data", "two"); code != exitDone || !strings.Contains(out, "pk_") {
		t.Errorf("the old key: exit code %d, %s", code, said)
	}
	says(exitFailed, "holds an installation already", "restore", "--from", "b.zip", "--data", "two")
	if err := os.MkdirAll(in("three"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("three/puntuale.db.key"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(exitFailed, "is not the backup's", "restore", "--from", "b.zip", "--data", "three")
	whole, err := os.ReadFile(in("b.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("cut.zip"), whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	says(exitFailed, "cut short", "restore", "--from", "cut.zip", "--data", "four")
	says(exitFailed, "no such file", "restore", "--from", "c.zip", "--data", "four")
	if _, err := os.Stat(in("four/puntuale.db")); err == nil {
		t.Error("a damaged backup left a database")
	}

	says(exitDone, "set aside", "restored", "--since", "2026-01-01", "--data", "two")
	says(exitFailed, "lies ahead", "restored", "--since", "2999-01-01", "--data", "two")
	says(exitUsage, "is not a moment", "restored", "--since", "ieri", "--data", "two")
	says(exitDone, "UNKNOWN", "unknown", "list", "--data", "two")
	says(exitFailed, "nothing to decide", "unknown", "close", "--all", "--data", "two")
	says(exitUsage, "--client or --all", "unknown", "resend", "--data", "two")
	if rest, err := filepath.Glob(in(".*")); err != nil || len(rest) > 0 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
}
