//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// binary is the program's path. It is built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(attackersEnv) != "" {
		return attack()
	}
	dir, err := os.MkdirTemp("", "puntuale-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "puntuale")
	if given := os.Getenv("PUNTUALE_BINARY"); given != "" {
		binary = given
		return runCompared(m)
	}
	build := exec.Command("go", "build", "-o", binary, "puntuale/cmd/puntuale")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the binary:", err)
		return 1
	}
	return runCompared(m)
}

// runCompared runs all tests. It reports a failure if the OpenAPI document did not describe some call or answer.
func runCompared(m *testing.M) int {
	code := m.Run()
	if document.report(os.Stderr) {
		code = max(code, 1)
	}
	return code
}

// databases runs a test twice, on SQLite and on PostgreSQL. Each run gets a new database.
func databases(t *testing.T, test func(t *testing.T, database string)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, filepath.Join(t.TempDir(), "puntuale.db"))
	})
	t.Run("postgres", func(t *testing.T) { test(t, postgres(t)) })
}

// postgres creates a new database on the cluster that all tests share, and returns the database's address.
func postgres(t *testing.T) string {
	t.Helper()
	admin := os.Getenv("PUNTUALE_TEST_POSTGRES")
	if admin == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PUNTUALE_TEST_POSTGRES is not set: in CI the PostgreSQL tests must run")
		}
		t.Skip("PUNTUALE_TEST_POSTGRES is not set (scripts/with-postgres sets it)")
	}
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		t.Fatal(err)
	}
	name := "e2e_" + hex.EncodeToString(random[:])
	db, err := sql.Open("pgx", admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("create database " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("drop database if exists " + name + " with (force)"); err != nil {
			t.Error(err)
		}
	})
	address, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/" + name
	return address.String()
}

// databaseFlag returns the value of the flag --database for a database of the function databases.
func databaseFlag(database string) string {
	if strings.HasPrefix(database, "postgres") {
		return database
	}
	return "sqlite:" + database
}

// server is one running process of the binary.
type server struct {
	t        *testing.T
	program  string
	args     []string
	env      []string // added to the environment of the test
	base     string
	log      string // the path of the log; restarts append to the same file
	database string
	cmd      *exec.Cmd
	exited   chan error
}

// lastPort is the port that freeAddr returned last. It begins at random, because several test binaries may run.
var lastPort atomic.Uint32

func init() { lastPort.Store(mathrand.Uint32N(firstEphemeral)) }

// Systems give outgoing connections the ports from firstEphemeral on. A server on such a port may find it taken when it
// starts again.
const firstEphemeral = 32768

// freeAddr finds a loopback port that nobody uses, and that no outgoing connection gets.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range firstEphemeral {
		port := lastPort.Add(1) % firstEphemeral
		if port < 10_000 {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// beside lets a test run beside another one, after all tests that run alone. Such a test waits most of the time, and
// does not measure how long something takes.
func beside(t *testing.T) {
	t.Helper()
	if !long {
		t.Parallel()
	}
}

// serve starts `puntuale serve --sandbox` and waits until it is ready.
func serve(t *testing.T, database string, more ...string) *server {
	t.Helper()
	s := prepare(t, database, more...)
	s.start()
	return s
}

// prepare does the same as serve, but does not start the server.
func prepare(t *testing.T, database string, more ...string) *server {
	t.Helper()
	addr := freeAddr(t)
	s := &server{t: t, program: binary, base: "http://" + addr, database: database, log: filepath.Join(t.TempDir(), "server.log")}
	s.args = append([]string{"serve", "--addr", addr, "--data", t.TempDir(), "--database", databaseFlag(database), "--sandbox"}, more...)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("server log, the end of what is not a request:\n%s", events(s.log, 30))
		}
	})
	return s
}

func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.program, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = append(os.Environ(), s.env...)
	if !slices.ContainsFunc(s.args, func(arg string) bool { return strings.HasPrefix(arg, "--calls") }) {
		s.cmd.Env = append(s.cmd.Env, "PUNTUALE_PATIENCE=30s") // the machine may be very slow, and these tests do not measure how long calls wait
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan<- error) { exited <- cmd.Wait() }(s.cmd, s.exited)
	eventually(s.t, 20*time.Second, "the server is ready", func() bool {
		select {
		case err := <-s.exited:
			s.exited <- err
			s.t.Fatalf("the server ended at once: %v\n%s", err, tail(s.log, 3000))
		default:
		}
		response, err := http.Get(s.base + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// kill ends the process with SIGKILL. It returns after the process has ended.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	err := <-s.exited
	s.exited <- err
	s.cmd = nil
}

// signal sends a signal that does not end the process.
func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// terminate sends SIGTERM and returns the exit code.
func (s *server) terminate(within time.Duration) int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(within):
		s.t.Fatalf("still running %v after SIGTERM", within)
	}
	code := s.cmd.ProcessState.ExitCode()
	s.cmd = nil
	return code
}

// events returns the last lines of a log, and leaves out lines about answered requests.
func events(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.Contains(line, `"level":"INFO","msg":"request"`)
	})
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > n {
		text = text[len(text)-n:]
	}
	return string(text)
}

// eventually polls until holds returns true.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// command runs the binary to its end and returns its standard output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	return commandOf(t, binary, args...)
}

// commandOf runs a program to its end, and returns the program's output. The program need not be the tested binary.
func commandOf(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("puntuale %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// createPartner runs `puntuale partner create`. A server may run on the same database at the same time.
func createPartner(t *testing.T, database string, more ...string) (key string) {
	t.Helper()
	return createPartnerBy(t, binary, database, more...)
}

// createPartnerBy does the same as createPartner, with a different program than the tested binary.
func createPartnerBy(t *testing.T, program, database string, more ...string) (key string) {
	t.Helper()
	out := commandOf(t, program, append([]string{"partner", "create", "--data", t.TempDir(), "--database", databaseFlag(database),
		"--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga 42", "--json"}, more...)...)
	var created struct {
		ID  any    `json:"id"`
		Key string `json:"api_key"`
	}
	if err := json.Unmarshal([]byte(out), &created); err != nil || created.Key == "" || created.ID == nil {
		t.Fatalf("partner create printed %q (%v)", out, err)
	}
	return created.Key
}
