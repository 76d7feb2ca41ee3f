//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// readmeAddr is the address of the server in the README. The test replaces it by a free port.
const readmeAddr = "127.0.0.1:8080"

// TestReadme pastes the README's commands under "Use it" into a shell, in a copy of the sources, as a new user does.
func TestReadme(t *testing.T) {
	sources := copySources(t)
	text, err := os.ReadFile(filepath.Join(sources, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Use it\n")
	_, script, _ := strings.Cut(section, "```sh\n")
	script, _, found := strings.Cut(script, "```\n")
	if !found || !strings.Contains(script, readmeAddr) {
		t.Fatalf("the README has no such commands: %q", script)
	}
	addr := freeAddr(t)
	out, code := paste(t, sources, strings.ReplaceAll(script, readmeAddr, addr), "PUNTUALE_ADDR="+addr)
	if code != nil {
		t.Fatalf("%v:\n%s", code, out)
	}
	for _, want := range []string{`"daily_api_used":1,`, `"stato":"COMPLETED"`, "Ciao Anna, ti aspettiamo", `"stato":"PENDING"`, "A domani alle 10:30, Anna!"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s was not printed:\n%s", want, out)
		}
	}

	// another server has the port: the block says so, and asks that server nothing
	other, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })}
	go func() { _ = server.Serve(other) }()
	defer func() { _ = server.Close() }()
	out, _ = paste(t, sources, strings.ReplaceAll(script, readmeAddr, addr), "PUNTUALE_ADDR="+addr)
	if n := asked.Load(); n > 0 || !strings.Contains(out, "address already in use") {
		t.Errorf("with a held port, %d calls reached the other server:\n%s", n, out)
	}
}

// paste runs a script in a new shell. After the script, it ends all processes that the script started.
func paste(t *testing.T, dir, script string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-eu", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // a server in the background keeps the pipe open
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		eventually(t, 30*time.Second, "what the script started has ended", func() bool {
			return syscall.Kill(-cmd.Process.Pid, 0) != nil
		})
	}
	if err != nil && strings.Contains(err.Error(), exec.ErrWaitDelay.Error()) {
		err = nil
	}
	return out.String(), err
}

// copySources copies the module's sources, without files that were built or served there. So a test changes nothing in
// the module.
func copySources(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "bin" || strings.HasPrefix(entry.Name(), "puntuale-")):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(target, name), 0o755)
		case !entry.Type().IsRegular() || name == "puntuale":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, name), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return target
}
