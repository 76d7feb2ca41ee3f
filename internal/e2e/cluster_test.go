//go:build e2e

package e2e

import (
	"bufio"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cluster is a PostgreSQL that belongs to one test. The test may stop and start it.
type cluster struct {
	t       *testing.T
	address string // the address of its database named postgres
	data    string // its data folder
	port    string
}

// newCluster starts a cluster, which ends with the test. If the test's process is killed, scripts/with-postgres ends
// the cluster, because the input of its command is closed.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv("PUNTUALE_TEST_POSTGRES") == "" {
		postgres(t) // if PostgreSQL is missing, this fails or skips the test with the reason
	}
	cmd := exec.Command(filepath.Join("..", "..", "scripts", "with-postgres"), "sh", "-c", `echo "$PUNTUALE_TEST_POSTGRES"; exec cat >/dev/null`)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PUNTUALE_TEST_POSTGRES=") })
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the cluster's end: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address := strings.TrimSpace(line)
	if err != nil || address == "" {
		t.Fatalf("no PostgreSQL was started: %v", err)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, address, filepath.Join(parsed.Query().Get("host"), "data"), parsed.Query().Get("port")}
}

// crash stops the cluster without a checkpoint, as a power cut would: pg_ctl -m immediate.
func (c *cluster) crash() { c.pgCtl("-m", "immediate", "-w", "stop") }

// start starts the cluster again. When it returns, the cluster has recovered and accepts connections.
func (c *cluster) start() {
	c.pgCtl("-o", "-p "+c.port, "-l", filepath.Join(filepath.Dir(c.data), "again.log"), "-w", "-t", "60", "start")
}

// pgCtl runs pg_ctl as the user who owns the cluster, because PostgreSQL refuses to run as root.
func (c *cluster) pgCtl(args ...string) {
	c.t.Helper()
	program := postgresProgram(c.t, "pg_ctl")
	args = append([]string{program, "-D", c.data}, args...)
	if os.Getuid() == 0 {
		args = append([]string{"runuser", "-u", serverUser(c.t), "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	// The output goes into a file. With a pipe, the started server would keep the pipe open.
	log, err := os.CreateTemp(c.t.TempDir(), "pg_ctl")
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s after %v: %v\n%s", strings.Join(args, " "), time.Since(began), err, tail(log.Name(), 2000))
	}
}

// postgresProgram finds one of PostgreSQL's programs. Debian does not put them into PATH.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/", "/usr/pgsql-*/bin/", "/opt/homebrew/opt/postgresql*/bin/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// serverUser returns the user that runs PostgreSQL if the test runs as root. It is the user that scripts/with-postgres
// uses.
func serverUser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	t.Fatal("there is neither a user postgres nor nobody")
	return ""
}
