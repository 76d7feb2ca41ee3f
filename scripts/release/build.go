package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// cold lists the packages that are compiled without inlining, and then those of them that are inlined all the same,
// because what each message costs depends on them. docs/decisions/running.md says why.
var cold = []string{
	"puntuale/...=-l", "puntuale=", "puntuale/internal/batch=", "puntuale/internal/clock=", "puntuale/internal/store/...=", "puntuale/internal/dispatch/...=", "puntuale/internal/plan/...=",
	"go.mau.fi/...=-l", "github.com/alecthomas/...=-l", "github.com/beeper/...=-l", "github.com/go-openapi/...=-l", "github.com/liyue201/...=-l",
	"github.com/nicksnyder/...=-l", "github.com/pelletier/...=-l", "github.com/pressly/...=-l", "github.com/prometheus/...=-l", "github.com/rs/...=-l",
	"github.com/SherClockHolmes/...=-l", "github.com/vektah/...=-l", "github.com/wneessen/...=-l", "github.com/yuin/...=-l",
	"filippo.io/...=-l", "github.com/danielgtaylor/...=-l", "github.com/minio/...=-l", "github.com/tinylib/...=-l", "github.com/klauspost/...=-l",
	"golang.org/x/text/...=-l", "go.yaml.in/...=-l", "gopkg.in/...=-l",
}

// program is a compiled program of one platform.
type program struct {
	os, arch string
	path     string
	size     int64 // bytes
}

// compile builds the program of one platform, such as linux/arm64.
func (r *release) compile(ctx context.Context, target string) (program, error) {
	system, arch, _ := strings.Cut(target, "/")
	p := program{os: system, arch: arch, path: filepath.Join(r.work, system+"-"+arch, "puntuale")}
	if system == "windows" {
		p.path += ".exe"
	}
	stamp := fmt.Sprintf("%.12s of %s", r.program.commit, r.program.at.Format(time.RFC3339))
	flags := fmt.Sprintf("-s -w -buildid= -funcalign=8 -X main.version=%s -X 'main.commit=%s'", r.version, stamp)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", flags}
	for _, pattern := range cold {
		args = append(args, "-gcflags="+pattern)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", p.path, "./cmd/puntuale")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.program.folder, os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off",
		"GOEXPERIMENT=")
	fmt.Fprintln(os.Stderr, "release: compiling for", target)
	if err := cmd.Run(); err != nil {
		return p, fmt.Errorf("compile for %s: %w", target, err)
	}
	info, err := os.Stat(p.path)
	if err != nil {
		return p, err
	}
	p.size = info.Size()
	built, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return p, fmt.Errorf("read what %s is made of: %w", p.path, err)
	}
	if built.GoVersion != goVersion {
		return p, fmt.Errorf("compiled with %s, but releases are made with %s", built.GoVersion, goVersion)
	}
	for _, m := range built.Deps {
		r.addModule(m)
	}
	if target == "linux/amd64" && p.size > r.bounds.program {
		return p, fmt.Errorf("the program has %s, and %s are allowed", mebibytes(p.size), mebibytes(r.bounds.program))
	}
	r.figures = append(r.figures, fmt.Sprintf("program for %s: %s", target, mebibytes(p.size)))
	return p, nil
}

func (r *release) addModule(m *debug.Module) {
	if m.Replace != nil {
		m = &debug.Module{Path: m.Path, Version: m.Replace.Version, Sum: m.Replace.Sum}
	}
	r.modules[m.Path] = module{Path: m.Path, Version: m.Version, sum: m.Sum}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// starts is how often checkStart tries at most.
const starts = 20

// checkStart starts this machine's program on empty folders, and checks that it is ready soon after a start. The best of
// some starts counts, because the machine may be busy with other work for a while. If no start was fast enough, the
// error also has the processor time, which shows whether the machine or the program is slow.
func (r *release) checkStart(ctx context.Context, programs []program) error {
	for _, p := range programs {
		if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
			continue
		}
		best, least := time.Hour, time.Hour
		for i := 0; i < starts && (i < 5 || best > r.bounds.ready); i++ {
			took, worked, err := startTime(ctx, p.path, filepath.Join(r.work, fmt.Sprintf("start%d", i)))
			if err != nil {
				return err
			}
			best, least = min(best, took), min(least, worked)
		}
		said := fmt.Sprintf("ready on an empty database after %v, with %v of processor time", best.Round(time.Millisecond), least.Round(time.Millisecond))
		if best > r.bounds.ready {
			if least <= r.bounds.ready {
				said += ": the machine is busy"
			}
			return fmt.Errorf("%s; %v are allowed", said, r.bounds.ready)
		}
		fmt.Println(said)
		r.figures = append(r.figures, fmt.Sprintf("ready on an empty database: within %v", r.bounds.ready))
	}
	return nil
}

// startTime starts a server on an empty folder. It returns how long it took until the server was ready, and how much
// processor time the server needed.
func startTime(ctx context.Context, path, folder string) (took, worked time.Duration, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	addr := l.Addr().String()
	_ = l.Close()
	log, err := os.Create(folder + ".log")
	if err != nil {
		return 0, 0, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, path, "serve", "--sandbox", "--addr", addr, "--data", folder)
	cmd.Dir, cmd.Stderr = filepath.Dir(folder), log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	stop := func() time.Duration {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	for time.Since(began) < time.Minute {
		answer, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				took = time.Since(began)
				return took, stop(), nil
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	stop()
	said, _ := os.ReadFile(folder + ".log")
	return 0, 0, fmt.Errorf("the server was not ready: %s", said)
}
