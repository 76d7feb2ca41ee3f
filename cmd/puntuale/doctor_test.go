package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"puntuale/internal/doctor"
)

// TestDoctor: on a fresh machine, on a running server, and with open files, the doctor says what is wrong. Only faults
// change the exit code.
func TestDoctor(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	findings := func(code int, args ...string) map[string]doctor.Level {
		t.Helper()
		got, out, errs := term.runs("", append([]string{"doctor", "--json"}, args...)...)
		if got != code {
			t.Fatalf("exit code %d: %s%s", got, out, errs)
		}
		var report struct {
			Level    doctor.Level
			Findings []doctor.Finding
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		levels := map[string]doctor.Level{}
		for _, f := range report.Findings {
			if f.Level != doctor.OK && f.Do == "" && f.Subject != "rehearsal" {
				t.Errorf("%s: it does not say what to do: %s", f.Subject, f.Text)
			}
			if levels[f.Subject] != doctor.Fault {
				levels[f.Subject] = f.Level
			}
		}
		return levels
	}
	if found := findings(exitFailed); found["database"] != doctor.Fault || found["server"] != doctor.Warning {
		t.Errorf("on a fresh machine: %v", found)
	}
	server := start(t, term, "serve", "--sandbox", "--addr", "127.0.0.1:0", "--files-to", "files")
	base := strings.TrimPrefix(server.logged.waitFor(t, `"url":"(http://[^"]+)"`), "http://")
	found := findings(exitFailed, "--addr", base)
	if found["server"] != doctor.OK || found["database"] != doctor.OK || found["key"] != doctor.OK || found["backup"] != doctor.Fault || found["public address"] != doctor.Warning {
		t.Errorf("on a running server: %v", found)
	}
	for place, want := range map[string]doctor.Level{"files": doctor.OK, "elsewhere": doctor.Fault} {
		if found := findings(exitFailed, "--addr", base, "--files-to", place); found["files"] != want {
			t.Errorf("files in %s: %v", place, found)
		}
	}
	if code, _, errs := term.runs("", "backup", "--to", "b.zip", "--files-to", "files"); code != exitDone {
		t.Fatal(errs)
	}
	if found := findings(exitDone, "--addr", base); found["backup"] != doctor.OK {
		t.Errorf("after a backup: %v", found)
	}
	if err := os.Chmod(filepath.Join(term.dir, "puntuale-data", "puntuale.db.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if found := findings(exitFailed, "--addr", base); found["key"] != doctor.Fault {
		t.Errorf("with an open key file: %v", found)
	}
	if found := findings(exitFailed, "--addr", "0.0.0.0:1"); found["public address"] != doctor.Fault {
		t.Errorf("without TLS: %v", found)
	}
	if code, out, _ := term.runs("", "doctor"); code != exitFailed || !strings.Contains(out, "→ Run chmod 600") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
