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

// TestSecondKeyReplaced: the second key is replaced while a server runs. The server goes on to open its secrets, the next
// start needs the new key, and the former key is kept. A command that was killed half-way is continued.
func TestSecondKeyReplaced(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0", "--data", "data")
	base := server.logged.waitFor(t, `"url":"(http://[^"]+)"`)
	partner := term.besideServer(t)(t, "", "partner", "create", "--name", "A", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
	_, body := call(t, "POST", base+"/api/client/create", partner, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	key := field(t, body, "api_key")
	status, body := call(t, "POST", base+"/api/webhooks", key, `{"url": "https://example.com/x", "types": ["message.sent"]}`) // its secret is sealed
	if status != 200 {
		t.Fatalf("a webhook: %d %s", status, body)
	}
	rotate := func() {
		t.Helper()
		if status, body := call(t, "POST", base+"/api/webhooks/1/rotate", key, ""); status != 200 {
			t.Errorf("the running server cannot open its secrets: %d %s", status, body)
		}
	}
	file := filepath.Join(term.dir, "data", "puntuale.db.key")
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := read(file)
	says := func(code int, said string, args ...string) {
		t.Helper()
		got, out, errs := term.runs("", append([]string{"key", "second", "--data", "data"}, args...)...)
		if got != code || !strings.Contains(out+errs, said) || strings.Contains(out+errs, strings.TrimSpace(first)) {
			t.Fatalf("%v: exit code %d, %s%s", args, got, out, errs)
		}
	}
	says(exitDone, "Running servers go on")
	rotate()
	second := read(file)
	former, err := filepath.Glob(file + ".former-*")
	if err != nil || len(former) != 1 || read(former[0]) != first || second == first {
		t.Fatalf("%v, %v", former, err)
	}
	term.file(t, "mine", strings.Repeat("m", 44)+"\n")
	says(exitFailed, "has the present key", "--new-key-file", "data/puntuale.db.key")
	says(exitDone, "Give every server this key", "--new-key-file", "mine")
	rotate()
	server.end()
	serve := func(code int, args ...string) {
		t.Helper()
		if code == exitDone {
			again := start(t, term, append([]string{"serve", "--sandbox", "--addr", "127.0.0.1:0", "--data", "data"}, args...)...)
			base = again.logged.waitFor(t, `"url":"(http://[^"]+)"`)
			rotate()
			again.end()
			return
		}
		if got, _, errs := term.runs("", append([]string{"serve", "--addr", "127.0.0.1:0", "--data", "data"}, args...)...); got != code || !strings.Contains(errs, "sealed under another key") {
			t.Errorf("%v: exit code %d, %s", args, got, errs)
		}
	}
	serve(exitFailed)
	serve(exitDone, "--key-file", "mine")
	// The command was killed after it had wrapped the data key, and before it put the file in place.
	term.file(t, "mine.new", strings.Repeat("n", 44)+"\n")
	says(exitDone, "Give every server", "--key-file", "mine", "--new-key-file", "mine.new")
	says(exitDone, "which is in "+filepath.Join(term.dir, "mine"), "--key-file", "mine")
	if text := read(filepath.Join(term.dir, "mine")); !strings.HasPrefix(text, "nnn") {
		t.Errorf("the key file is not that of the killed command: %s", text)
	}
	serve(exitDone, "--key-file", "mine")
}

// TestDataKeyReplaced: the data key is replaced while no server runs, before and after the second key. What was sealed before
// is opened by the next server. The test of the built program does it beside servers.
func TestDataKeyReplaced(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, errs := term.runs("", "key", "data", "--data", "data"); code != exitFailed || !strings.Contains(errs, "there is no database") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	var base, key string
	serve := func(call func()) {
		t.Helper()
		server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0", "--data", "data")
		base = server.logged.waitFor(t, `"url":"(http://[^"]+)"`)
		call()
		server.end()
	}
	serve(func() {
		partner := term.besideServer(t)(t, "", "partner", "create", "--name", "A", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
		_, body := call(t, "POST", base+"/api/client/create", partner, `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
		key = field(t, body, "api_key")
		if status, body := call(t, "POST", base+"/api/webhooks", key, `{"url": "https://example.com/x", "types": ["message.sent"]}`); status != 200 {
			t.Fatalf("a webhook: %d %s", status, body)
		}
	})
	for _, command := range []string{"data", "second", "data", "data"} {
		if code, out, errs := term.runs("", "key", command, "--data", "data"); code != exitDone || command == "data" && (!strings.Contains(out, "gone from the database") || strings.Contains(out, "neither")) {
			t.Fatalf("key %s: exit code %d, %s%s", command, code, out, errs)
		}
		serve(func() {
			if status, body := call(t, "POST", base+"/api/webhooks/1/rotate", key, ""); status != 200 {
				t.Errorf("after key %s: %d %s", command, status, body)
			}
		})
	}
	term.file(t, "other", strings.Repeat("o", 44))
	if code, _, errs := term.runs("", "key", "data", "--data", "data", "--key-file", "other"); code != exitFailed || !strings.Contains(errs, "give the present second key") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
