//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dbServer is a PostgreSQL that belongs to one test. It can have settings, and can be replicated, killed and promoted.
// A cluster, in contrast, can only be stopped and started.
type dbServer struct {
	t       *testing.T
	owner   *syscall.Credential // the user that runs the server, because PostgreSQL refuses to run as root
	dir     string
	port    string
	options []string // settings, each in the form name=value
}

func newServerFolder(t *testing.T, options ...string) *dbServer {
	t.Helper()
	if os.Getenv("PUNTUALE_TEST_POSTGRES") == "" {
		postgres(t) // if PostgreSQL is missing, this fails or skips the test with the reason
	}
	c := &dbServer{t: t, options: options}
	place := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		place = "/dev/shm"
	}
	var err error
	if c.dir, err = os.MkdirTemp(place, "puntuale-e2e-pg-"); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		u, err := user.Lookup(serverUser(t))
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		c.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(c.dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	c.port = freeAddr(t)[len("127.0.0.1:"):]
	// A test that is killed cannot clean up. This process cleans up after the test's process has ended.
	watch := exec.Command("sh", "-c", `while kill -0 "$1" 2>/dev/null; do sleep 1; done
 kill -QUIT "$(head -n 1 "$2/data/postmaster.pid")"; sleep 1; rm -rf "$2"`, "sh", strconv.Itoa(os.Getpid()), c.dir)
	watch.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = watch.Process.Kill()
		_ = watch.Wait()
		c.stop("immediate")
		if t.Failed() {
			t.Logf("PostgreSQL's log, its end:\n%s", tail(filepath.Join(c.dir, "log"), 3000))
		}
		os.RemoveAll(c.dir)
	})
	return c
}

// newDBServer makes and starts a server with additional settings. Each option has the form "name=value".
func newDBServer(t *testing.T, options ...string) *dbServer {
	t.Helper()
	c := newServerFolder(t, options...)
	c.initdb()
	c.start()
	return c
}

func (c *dbServer) initdb(more ...string) {
	c.t.Helper()
	c.must("initdb", append([]string{"-D", c.data(), "-U", "puntuale", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"}, more...)...)
}

// standby makes and starts a standby server that replicates the server c.
func (c *dbServer) standby(options ...string) *dbServer {
	c.t.Helper()
	s := newServerFolder(c.t, options...)
	s.must("pg_basebackup", "-h", "127.0.0.1", "-p", c.port, "-U", "puntuale", "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	s.start()
	return s
}

func (c *dbServer) data() string { return filepath.Join(c.dir, "data") }

func (c *dbServer) run(program string, args ...string) (string, error) {
	cmd := exec.Command(postgresProgram(c.t, program), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *dbServer) must(program string, args ...string) {
	c.t.Helper()
	if out, err := c.run(program, args...); err != nil {
		c.t.Fatalf("%s: %v\n%s\n%s", program, err, out, tail(filepath.Join(c.dir, "log"), 2000))
	}
}

// start starts the server and waits until it answers.
func (c *dbServer) start() {
	c.t.Helper()
	all := append([]string{"port=" + c.port, "listen_addresses=127.0.0.1", "unix_socket_directories=" + c.dir,
		"dynamic_shared_memory_type=mmap", "max_connections=100", "shared_buffers=64MB"}, c.options...)
	c.must("pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-w", "-t", "60", "-o", "-c "+strings.Join(all, " -c "), "start")
}

// stop ends the server. mode is "fast", or "immediate", which acts like a crash.
func (c *dbServer) stop(mode string) {
	_, _ = c.run("pg_ctl", "-D", c.data(), "-m", mode, "-w", "-t", "60", "stop") // the server may have stopped before
}

// kill ends the server with SIGKILL, as the kernel does when memory runs out. The server's children notice this a
// little later.
func (c *dbServer) kill() {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, 20*time.Second, "the killed PostgreSQL is gone", func() bool {
		// While a backend lives, it uses the shared memory, and a new server refuses to start.
		out, _ := exec.Command("pgrep", "-f", c.data()).Output()
		children, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
		return len(out) == 0 && len(children) == 0
	})
	// If no parent process reaps the dead server, its process id still looks alive. A new server would then refuse to
	// start. Therefore the lock files are removed.
	for _, lock := range []string{filepath.Join(c.data(), "postmaster.pid"), filepath.Join(c.dir, ".s.PGSQL."+c.port+".lock")} {
		if err := os.Remove(lock); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *dbServer) promote() {
	c.t.Helper()
	c.must("pg_ctl", "-D", c.data(), "-w", "-t", "60", "promote")
}

// address returns an address with several servers of one database. The driver finds the server that accepts writes.
func address(all ...*dbServer) string {
	var hosts []string
	for _, c := range all {
		hosts = append(hosts, "127.0.0.1:"+c.port)
	}
	more := ""
	if len(all) > 1 {
		more = "&target_session_attrs=read-write"
	}
	return fmt.Sprintf("postgres://puntuale@%s/postgres?sslmode=disable%s", strings.Join(hosts, ","), more)
}

// sql opens the server's database.
func (c *dbServer) sql() *sql.DB {
	c.t.Helper()
	db, err := sql.Open("pgx", address(c))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { db.Close() })
	return db
}

func (c *dbServer) exec(statement string) {
	c.t.Helper()
	if _, err := c.sql().Exec(statement); err != nil {
		c.t.Fatalf("%s: %v", statement, err)
	}
}

// follows waits until the standby has replayed everything that c has written.
func (c *dbServer) follows(standby *dbServer) {
	c.t.Helper()
	var at string
	if err := c.sql().QueryRow("select pg_current_wal_lsn()::text").Scan(&at); err != nil {
		c.t.Fatal(err)
	}
	db := standby.sql()
	eventually(c.t, 20*time.Second, "the standby has followed", func() bool {
		var found bool
		return db.QueryRow("select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false)", at).Scan(&found) == nil && found
	})
}

// cutOff ends the standby's replication, so that the standby falls behind.
func (c *dbServer) cutOff() {
	c.t.Helper()
	c.exec("alter system set primary_conninfo = ''")
	c.exec("select pg_reload_conf()")
	db := c.sql()
	eventually(c.t, 20*time.Second, "the standby follows no more", func() bool {
		var n int
		return db.QueryRow("select count(*) from pg_stat_wal_receiver").Scan(&n) == nil && n == 0
	})
}
