package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestFolderOfAnother runs commands as "runuser -u puntuale" does in /root: the user may not enter the working folder. A
// configuration file there is as good as absent, unless it is named. A file that the user may not read is a fault.
func TestFolderOfAnother(t *testing.T) {
	t.Parallel()
	term := newConsole(t, map[string]string{"PUNTUALE_RATE": "7"})
	term.file(t, configFile, "rate = 5\n")
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, configFile), nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(term.dir, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(term.dir, 0o700) }()
	if os.Getuid() == 0 { // root reads everything, so this thread becomes somebody else, who owns the second folder
		runtime.LockOSThread()
		if err := os.Chown(data, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(data), 0o711); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setfsuid(0) }()
	}
	for name, args := range map[string][]string{"a named file": {"--config", configFile}, "a file of another": {"--data", data}} {
		if code := term.run(t.Context(), append([]string{"config"}, args...)); code != exitUsage || !strings.Contains(term.errs.String(), "cannot be read") {
			t.Errorf("%s: exit code %d: %s", name, code, term.errs.String())
		}
		term.errs.Reset()
	}
	if got := term.setting(t, "rate"); !strings.HasPrefix(got, "rate = 7") {
		t.Errorf("got %q", got)
	}
}
