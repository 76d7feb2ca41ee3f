package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func resident(engine string, pending int) string {
	if pending == 0 {
		return on("resident memory of the server, idle", engine)
	}
	return on("resident memory of the server, "+count(pending)+" pending", engine)
}

// memory measures the built server, which sends and answers, on its own.
func (b *bench) memory(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		for _, pending := range append([]int{0}, b.pending...) {
			if pending > 0 && pending < 3*b.rows || pending > 1_000_000 && !b.first() {
				continue
			}
			failed = errors.Join(failed, b.residentMemory(ctx, engine, pending))
		}
	}
	return failed
}

// build makes the product's binary once.
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

func (b *bench) residentMemory(ctx context.Context, engine string, pending int) error {
	if err := b.build(ctx); err != nil {
		return err
	}
	f, err := b.fixture(ctx, engine, pending)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.store.Close(); err != nil { // the server has its own
		return err
	}
	f.store = nil
	database := f.address
	if engine == sqlite {
		database = "sqlite:" + f.address
	}
	cmd := exec.Command(b.binary, "serve", "--sandbox", "--data", f.folder, "--database", database, "--addr", "127.0.0.1:0", "--log-level", "info")
	cmd.Env = append(os.Environ(), "PUNTUALE_CONFIG=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	words, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		impatient := time.AfterFunc(stopLimit, func() { _ = cmd.Process.Kill() })
		defer impatient.Stop()
		_ = cmd.Wait()
	}()
	if err := serving(words); err != nil {
		return err
	}
	select {
	case <-time.After(b.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	var kib float64
	if _, err := fmt.Sscanf(field(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid), "VmRSS"), "%f", &kib); err != nil {
		return fmt.Errorf("read the server's memory: %w", err)
	}
	b.sheet.note(resident(engine, pending), mebibytes, kib/1024)
	return nil
}

// serving waits until the server says that it serves, and lets it talk on.
func serving(words interface{ Read([]byte) (int, error) }) error {
	ready := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(words)
		last := ""
		for lines.Scan() {
			if last = lines.Text(); strings.Contains(last, `"msg":"serving"`) {
				ready <- nil
			}
		}
		select {
		case ready <- fmt.Errorf("the server ended: %s", last):
		default:
		}
	}()
	select {
	case err := <-ready:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("the server does not begin to serve")
	}
}
