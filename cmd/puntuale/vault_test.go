package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"puntuale/internal/store/storetest"
)

// TestKeyFile: on SQLite, the key that seals secrets is in a separate file. The file is made only once. Without the
// file, the server does not start.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	args := []string{"serve", "--addr", "127.0.0.1:0", "--data", "data"}
	file := filepath.Join(term.dir, "data", "puntuale.db.key")
	serve := func() string {
		server := start(t, term, args...)
		server.logged.waitFor(t, `"url":"([^"]+)"`)
		server.end()
		return server.logged.String()
	}
	const open = "others than its owner may read the key file"
	if log := serve(); strings.Contains(log, open) {
		t.Error(log)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	serve()
	if again, err := os.ReadFile(file); err != nil || string(again) != string(first) {
		t.Errorf("the key file changed: %v", err)
	}

	refused := func(env map[string]string, what string) {
		t.Helper()
		other := newConsole(t, env)
		other.dir = term.dir
		if code := other.run(context.Background(), args); code == exitDone || !strings.Contains(other.errs.String(), what) {
			t.Errorf("exit code %d, want %q: %s", code, what, other.errs.String())
		}
		if strings.Contains(other.errs.String(), strings.TrimSpace(string(first))) {
			t.Error("the key is shown")
		}
	}
	refused(map[string]string{"PUNTUALE_KEY": strings.Repeat("k", 44)}, "sealed under another key")
	refused(map[string]string{"PUNTUALE_KEY": "short"}, "at least 32")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused(nil, "puntuale.db.key is missing")
	if _, err := os.Stat(file); err == nil {
		t.Error("another key file was made")
	}
	term.file(t, "data/puntuale.db.key", "too short")
	refused(nil, "shorter than 32")
	term.file(t, "elsewhere/key", string(first))
	args = append(args, "--key-file", "elsewhere/key")
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: true, 0o604: true} {
		if err := os.Chmod(filepath.Join(term.dir, "elsewhere/key"), mode); err != nil {
			t.Fatal(err)
		}
		if log := serve(); strings.Contains(log, open) != warns {
			t.Errorf("mode %o: %s", mode, log)
		}
	}
	// The key is given as a text with a line end after it, as in many files with secrets.
	text := start(t, withFolder(newConsole(t, map[string]string{"PUNTUALE_KEY": string(first)}), term.dir), args[:len(args)-2]...)
	text.logged.waitFor(t, `"url":"([^"]+)"`)
	text.end()
	if shown := term.setting(t, "key", "--key", strings.Repeat("k", 44)); strings.Contains(shown, "kkk") {
		t.Errorf("config shows %s", shown)
	}
}

func withFolder(term *console, dir string) *console {
	term.dir = dir
	return term
}

// TestKeyOnPostgres: without a key, the server logs a warning. If the operator later gives a key, the server seals the
// existing data key with it.
func TestKeyOnPostgres(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t).Config.Database
	serve := func(env map[string]string) string {
		server := start(t, newConsole(t, env), "serve", "--addr", "127.0.0.1:0", "--database", database)
		server.logged.waitFor(t, `"url":"([^"]+)"`)
		server.end()
		return server.logged.String()
	}
	const warning = "beside the key that opens them"
	if log := serve(nil); !strings.Contains(log, warning) {
		t.Error(log)
	}
	key := map[string]string{"PUNTUALE_KEY": strings.Repeat("k", 44)}
	if log := serve(key); strings.Contains(log, warning) {
		t.Error(log)
	}
	term := newConsole(t, nil)
	if code := term.run(context.Background(), []string{"serve", "--addr", "127.0.0.1:0", "--database", database}); code == exitDone ||
		!strings.Contains(term.errs.String(), "the stored secrets are sealed") || strings.Contains(term.errs.String(), warning) {
		t.Errorf("%d %s", code, term.errs.String())
	}
	serve(key)
}
