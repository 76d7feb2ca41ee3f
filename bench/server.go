package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is the product's program, running on a fixture's database.
type server struct {
	cmd     *exec.Cmd
	address string // where the server listens, as HOST:PORT
}

// build compiles the product's program, once in a run of the bench.
func (b *bench) build(ctx context.Context) error {
	if b.binary != "" {
		return nil
	}
	name := filepath.Join(b.folder, "puntuale")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", name, "./cmd/puntuale")
	cmd.Dir = ".."
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w: %s", err, text)
	}
	b.binary = name
	return nil
}

// server starts the product's program on the fixture's database. It closes the fixture's store. The caller must stop
// the server.
func (b *bench) server(ctx context.Context, f *fixture) (*server, error) {
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	if err := f.store.Close(); err != nil { // the server opens its own store
		return nil, err
	}
	f.store = nil
	database := f.address
	if f.engine == sqlite {
		database = "sqlite:" + f.address
	}
	cmd := exec.Command(b.binary, "serve", "--sandbox", "--data", f.folder, "--database", database, "--addr", "127.0.0.1:0", "--log-level", "info",
		"--official-api-url", "http://127.0.0.1:1") // no request may leave this machine
	cmd.Env = append(os.Environ(), "PUNTUALE_CONFIG=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	words, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s := &server{cmd: cmd}
	if s.address, err = serving(words); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	impatient := time.AfterFunc(stopLimit, func() { _ = s.cmd.Process.Kill() })
	defer impatient.Stop()
	_ = s.cmd.Wait()
}

// memory returns a figure of the process's memory, in MiB. VmRSS is the present memory, and VmHWM is the largest so
// far.
func (s *server) memory(name string) (float64, error) {
	var kib float64
	if _, err := fmt.Sscanf(field(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), name), "%f", &kib); err != nil {
		return 0, fmt.Errorf("read the server's memory: %w", err)
	}
	return kib / 1024, nil
}

// cpu returns the processor time that the process has used so far.
func (s *server) cpu() time.Duration { return childrenCPU(s.cmd.Process.Pid)[s.cmd.Process.Pid] }

// serving waits until the server prints that it serves, and returns its address. It continues to read the output.
func serving(words interface{ Read([]byte) (int, error) }) (address string, err error) {
	ready, ended := make(chan string, 1), make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(words)
		last := ""
		for lines.Scan() {
			if last = lines.Text(); !strings.Contains(last, `"msg":"serving"`) {
				continue
			}
			var said struct{ URL string }
			if json.Unmarshal(lines.Bytes(), &said) == nil {
				ready <- strings.TrimPrefix(said.URL, "http://")
			}
		}
		ended <- last
	}()
	select {
	case address := <-ready:
		return address, nil
	case last := <-ended:
		return "", fmt.Errorf("the server ended: %s", last)
	case <-time.After(30 * time.Second):
		return "", errors.New("the server does not begin to serve")
	}
}
