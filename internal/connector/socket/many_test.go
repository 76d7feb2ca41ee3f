//go:build !nosocket

package socket_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// resident returns how much memory of the machine the process uses, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here")
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestMany restarts a connector with many linked numbers. The numbers connect again, and only a limited number of them
// logs in at the same time. The test prints time, memory and goroutines for each number. The simulated network's part
// is included. The environment variable PUNTUALE_MANY sets how many numbers there are.
func TestMany(t *testing.T) {
	many, _ := strconv.Atoi(os.Getenv("PUNTUALE_MANY"))
	if many == 0 {
		many = manyNumbers
	}
	w := newWorld(t)
	w.net.FewKeys()
	for i := range many {
		account := w.net.Account(fmt.Sprintf("39335%06d", i))
		if err := w.conn.Adopt(t.Context(), puntuale.SessionID(100+i), account.Adopt); err != nil {
			t.Fatal(err)
		}
	}
	openAll := func() time.Duration {
		began := time.Now()
		for i := range many {
			w.conn.Open(puntuale.Session{ID: puntuale.SessionID(100 + i), Client: theClient, Type: puntuale.Socket, Link: puntuale.Link{State: puntuale.LinkOnline}})
		}
		w.await("all are online", func() bool {
			for i := range many {
				if !w.conn.Online(puntuale.SessionID(100 + i)) {
					return false
				}
			}
			return true
		})
		return time.Since(began)
	}
	closeAll := func() time.Duration {
		began := time.Now()
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() { w.conn.Close(t.Context(), puntuale.SessionID(100+i)) })
		}
		all.Wait()
		return time.Since(began)
	}
	openAll() // not measured: at its first connection, each device also makes its keys
	closeAll()
	w.stop()
	before, threads := resident(t), runtime.NumGoroutine()
	w.start()
	took := openAll()
	after := resident(t)
	t.Logf("%d numbers: restored within %v, %d kB and %d goroutines each with the peer's half, closed within %v",
		many, took.Round(time.Millisecond), (after-before)/many/1024, (runtime.NumGoroutine()-threads)/many, closeAll().Round(time.Millisecond))
	if n := w.net.PeakArriving(); n > 32 {
		t.Errorf("%d logged in at once", n)
	}
	if took > time.Minute {
		t.Errorf("restored within %v", took)
	}
	if many >= 500 && after-before > 500<<20 {
		t.Errorf("%d MB", (after-before)>>20)
	}
}

// If a session is deleted while its node is down, the sweep removes the session's keys.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id := puntuale.SessionID(1); id <= 3; id++ {
		if err := w.conn.Adopt(t.Context(), id, w.net.Account(fmt.Sprintf("39336%06d", id)).Adopt); err != nil {
			t.Fatal(err)
		}
	}
	w.gone[2] = true
	w.stop()
	w.start() // no session has needed the keys since then
	if err := w.conn.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for table, column := range map[string]string{"socket_device": "session_id <> 2", "whatsmeow_device": "true"} {
		var rows int
		if err := w.db.QueryRow("select count(*) from " + table + " where " + column).Scan(&rows); err != nil || rows != 2 {
			t.Errorf("%s has %d rows (%v)", table, rows, err)
		}
	}
}
