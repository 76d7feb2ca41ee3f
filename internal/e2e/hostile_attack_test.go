//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hostileMix is a number of connections. Each connection repeats its own attack until the mix ends.
type hostileMix struct {
	Addr        string
	Connections int
	Attacks     []hostileAttack
}

// hostileAttack describes what one connection sends. If Drips is true, the connection sends one more byte from time to
// time. Only attacks with Reads read the answer.
type hostileAttack struct {
	Name, Request string
	Drips, Reads  bool
}

// hostileCount is what the attackers have counted so far.
type hostileCount struct {
	Open    int            // the largest number of connections that were open at the same time
	Refused int            // how many attempts to connect failed
	Made    map[string]int // how many connections each kind of attack made
}

func (c hostileCount) String() string {
	made := 0
	for _, n := range c.Made {
		made += n
	}
	return fmt.Sprintf("%d connections at most, %d in all, %d dials failed", c.Open, made, c.Refused)
}

// attackersEnv is the name of an environment variable. If it is set, the test's binary acts as the attackers.
const attackersEnv = "PUNTUALE_ATTACKERS"

// attackers is a separate process. Real attackers use the processors of other machines. Therefore this process has the
// lowest priority.
type attackers struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	asks  *json.Encoder
	reply *json.Decoder
}

// begin starts the attackers.
func (m hostileMix) begin(t *testing.T) *attackers {
	t.Helper()
	a := &attackers{cmd: exec.Command(os.Args[0])}
	a.cmd.Env, a.cmd.Stderr = append(os.Environ(), attackersEnv+"=1"), os.Stderr
	in, err := a.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = a.cmd.Wait() })
	a.in, a.asks, a.reply = in, json.NewEncoder(in), json.NewDecoder(out)
	if err := a.asks.Encode(m); err != nil {
		t.Fatal(err)
	}
	return a
}

// seen returns what the attackers have counted so far.
func (a *attackers) seen() (count hostileCount) {
	if err := a.asks.Encode("count"); err == nil {
		_ = a.reply.Decode(&count) // if the count is missing, the test fails later
	}
	return count
}

// end ends the attackers, and returns their final count.
func (a *attackers) end(t *testing.T) hostileCount {
	t.Helper()
	count := a.seen()
	a.in.Close()
	if err := a.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return count
}

// attack runs in the attackers' process. It ends when its standard input ends.
func attack() int {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) // if the system refuses this, the test is only harder
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	r := &raid{count: hostileCount{Made: map[string]int{}}}
	if err := in.Decode(&r.mix); err != nil {
		fmt.Fprintln(os.Stderr, "attackers:", err)
		return 1
	}
	r.begin()
	for asked := ""; in.Decode(&asked) == nil; {
		if out.Encode(r.seen()) != nil {
			break
		}
	}
	return 0 // the system closes the connections
}

// raid is a running mix.
type raid struct {
	mix hostileMix

	mu    sync.Mutex
	now   int
	count hostileCount
}

func (r *raid) seen() hostileCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.count
	count.Made = maps.Clone(count.Made)
	return count
}

func (r *raid) begin() {
	for i := range r.mix.Connections {
		go func() {
			// The kernel's queue of new connections is short, so the connections must not all come at the same time.
			time.Sleep(time.Duration(i) * time.Millisecond)
			for n := i; ; n++ {
				r.attack(&r.mix.Attacks[n%len(r.mix.Attacks)])
				time.Sleep(2*time.Second + time.Duration(rand.Int64N(int64(2*time.Second))))
			}
		}()
	}
}

// attack keeps one connection open as long as the server allows, at most 14 seconds.
func (r *raid) attack(a *hostileAttack) {
	conn, err := net.DialTimeout("tcp", r.mix.Addr, 5*time.Second)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.count.Refused++
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096) //nolint:forcetypeassert // it is TCP
	r.opened(a.Name)
	defer r.closed()
	deadline := time.Now().Add(14 * time.Second)
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, a.Request); err != nil {
		return
	}
	if a.Reads {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	for time.Now().Before(deadline) {
		time.Sleep(time.Second)
		if !a.Drips {
			continue
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			return
		}
	}
}

func (r *raid) opened(attack string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now++
	r.count.Open = max(r.count.Open, r.now)
	r.count.Made[attack]++
}

func (r *raid) closed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
}
