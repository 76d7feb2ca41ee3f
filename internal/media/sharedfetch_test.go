package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// TestSharing: callers that request the same file of the same run share one request. Other callers make separate
// requests.
func TestSharing(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		<-open
		serving("image/jpeg", bytes.Repeat([]byte("jpeg"), 50_000))(w, r)
	})
	f := newFetcher(t, Config{}, h.addr)
	r := request(h.under("/a.jpg"))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			m, err := f.Fetch(within(t), r)
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Close()
			if content, err := io.ReadAll(m); err != nil || len(content) != 200_000 {
				t.Errorf("%d bytes, %v", len(content), err)
			}
			if at, err := m.Seek(-4, io.SeekEnd); err != nil || at != 199_996 {
				t.Errorf("seek: %d, %v", at, err)
			}
			if content, err := io.ReadAll(m); err != nil || string(content) != "jpeg" {
				t.Errorf("the end is %q, %v", content, err)
			}
		})
	}
	eventually(t, "the host is asked", func() bool { return h.requests.Load() > 0 })
	close(open)
	all.Wait()
	fetch(t, f, r) // a later step of the same run
	if n := h.requests.Load(); n != 1 {
		t.Errorf("the host was asked %d times, want once", n)
	}
	for i, other := range []puntuale.MediaRequest{
		{Client: 8, Run: 42, URL: r.URL}, {Client: 7, Run: 43, URL: r.URL}, {Client: 7, Run: 42, URL: r.URL + "?b"}, {Client: 7, Run: 42, URL: r.URL, MaxBytes: 300_000},
	} {
		fetch(t, f, other)
		if n := h.requests.Load(); n != int64(i+2) {
			t.Errorf("%+v: the host was asked %d times in all, want %d", other, n, i+2)
		}
	}
}

// TestImpatience: a caller that gives up does not affect the others that wait. When the last caller gives up, the fetch
// ends, and the next caller begins a new fetch.
func TestImpatience(t *testing.T) {
	t.Parallel()
	open, gone := make(chan struct{}), make(chan struct{}, 10)
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-open:
			serving("image/jpeg", []byte("jpeg"))(w, r)
		case <-r.Context().Done():
			gone <- struct{}{}
		}
	})
	f := newFetcher(t, Config{Header: time.Hour, Total: time.Hour}, h.addr)
	r := request(h.under("/a.jpg"))
	ask := func() (give context.CancelFunc, answer chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		answer = make(chan error, 1)
		go func() {
			m, err := f.Fetch(ctx, r)
			if err == nil {
				m.Close()
			}
			answer <- err
		}()
		return cancel, answer
	}
	givenUp := func(err error) {
		t.Helper()
		if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Transient || !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	}
	give, first := ask()
	eventually(t, "the host is asked", func() bool { return h.requests.Load() == 1 })
	give()
	givenUp(<-first)
	select {
	case <-gone: // the request ended
	case <-time.After(maxWait):
		t.Fatal("nobody waits, and the request goes on")
	}

	giveOne, one := ask()
	eventually(t, "the host is asked again", func() bool { return h.requests.Load() == 2 })
	_, two := ask()
	eventually(t, "two wait", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.files[key{r.Client, r.Run, r.URL, f.cfg.MaxBytes}].users == 2
	})
	giveOne()
	givenUp(<-one)
	close(open)
	if err := <-two; err != nil {
		t.Errorf("the patient one: %v", err)
	}
	if n := h.requests.Load(); n != 2 {
		t.Errorf("the host was asked %d times, want 2", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Fetch(ended, r)
	givenUp(err)
}

// TestFailuresAreNotKept: after a failure, the next try requests the file from the host again.
func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.WriteHeader(http.StatusNotFound)
		default:
			serving("image/jpeg", []byte("jpeg"))(w, r)
		}
	})
	f := newFetcher(t, Config{}, h.addr)
	r := request(h.under("/a.jpg"))
	fails(t, f, r, puntuale.Transient, reasonUnreachable)
	fails(t, f, r, puntuale.Final, reasonMissing)
	fetch(t, f, r)
	fetch(t, f, r)
	if n := asked.Load(); n != 3 {
		t.Errorf("the host was asked %d times, want 3", n)
	}
}

// TestAge: a file is stored for a bounded time, but is never removed while a caller reads it.
func TestAge(t *testing.T) {
	t.Parallel()
	h := newHost(t, serving("image/jpeg", []byte("jpeg")))
	c := clock.NewFake(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	f := newFetcher(t, Config{Clock: c, Age: time.Hour}, h.addr)
	r := request(h.under("/a.jpg"))
	m, err := f.Fetch(within(t), r)
	if err != nil {
		t.Fatal(err)
	}
	c.Advance(59 * time.Minute)
	fetch(t, f, r)
	if n := h.requests.Load(); n != 1 {
		t.Errorf("after 59 minutes the host was asked %d times, want once", n)
	}
	c.Advance(time.Minute)
	fetch(t, f, r)
	if n := h.requests.Load(); n != 2 {
		t.Errorf("after an hour the host was asked %d times, want twice", n)
	}
	if content, err := io.ReadAll(m); err != nil || string(content) != "jpeg" {
		t.Errorf("the first reader gets %q, %v", content, err)
	}
	m.Close()
	m.Close() // a second Close does nothing
	c.Advance(2 * time.Hour)
	eventually(t, "what is old goes by itself", func() bool {
		c.Advance(time.Hour)
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.stored == 0 && len(f.files) == 0
	})
}

// TestBudget: the files on disk never exceed the budget. The unused file that would expire first is dropped. Files in
// use are not dropped.
func TestBudget(t *testing.T) {
	t.Parallel()
	h := newHost(t, serving("image/jpeg", make([]byte, 1000)))
	f := newFetcher(t, Config{Budget: 3500}, h.addr)
	name := func(i int) puntuale.MediaRequest { return request(h.under(fmt.Sprintf("/%d.jpg", i))) }
	for i := range 4 {
		fetch(t, f, name(i)) // the fourth file drops the first file
	}
	if f.stored != 3000 {
		t.Errorf("%d bytes are stored, want 3000", f.stored)
	}
	fetch(t, f, name(3))
	if n := h.requests.Load(); n != 4 {
		t.Errorf("the host was asked %d times, want 4", n)
	}
	var open []*puntuale.Media
	for i := range 3 {
		m, err := f.Fetch(within(t), name(10+i))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, m)
	}
	fails(t, f, name(20), puntuale.Transient, reasonLater)
	open[0].Close()
	fetch(t, f, name(21))
	for _, m := range open[1:] {
		if content, err := io.ReadAll(m); err != nil || len(content) != 1000 {
			t.Errorf("one in use was taken away: %d bytes, %v", len(content), err)
		}
		m.Close()
	}
}

// TestFiles: the number of open files is bounded.
func TestFiles(t *testing.T) {
	t.Parallel()
	h := newHost(t, serving("image/jpeg", []byte("jpeg")))
	f := newFetcher(t, Config{Files: 2}, h.addr)
	for i := range 5 {
		fetch(t, f, request(h.under(fmt.Sprintf("/%d.jpg", i))))
	}
	if n := len(f.files); n != 2 {
		t.Errorf("%d files are kept, want 2", n)
	}
	var open []*puntuale.Media
	for i := range 2 {
		m, err := f.Fetch(within(t), request(h.under(fmt.Sprintf("/%d.jpg", 10+i))))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, m)
	}
	fails(t, f, request(h.under("/20.jpg")), puntuale.Transient, reasonLater)
	for _, m := range open {
		m.Close()
	}
}

// TestFetchesAreBounded: the number of simultaneous fetches is bounded in total, for each host and for each client.
func TestFetchesAreBounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		cfg  Config
		most int64
	}{
		{"of one host", Config{PerHost: 2, MaxConcurrent: 100, PerClient: 100}, 2},
		{"in all", Config{PerHost: 100, MaxConcurrent: 3, PerClient: 100}, 3},
		{"for one client", Config{PerHost: 100, MaxConcurrent: 100, PerClient: 4}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var now, peak atomic.Int64
			step := make(chan struct{})
			h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
				n := now.Add(1)
				for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
				}
				<-step
				now.Add(-1)
				serving("image/jpeg", []byte("jpeg"))(w, r)
			})
			f := newFetcher(t, test.cfg, h.addr)
			var all sync.WaitGroup
			for i := range 12 {
				all.Go(func() {
					m, err := f.Fetch(within(t), request(h.under(fmt.Sprintf("/%d.jpg", i))))
					if err != nil {
						t.Error(err)
						return
					}
					m.Close()
				})
			}
			for range 12 / test.most {
				eventually(t, "all places are taken", func() bool { return now.Load() == test.most })
				for range test.most {
					step <- struct{}{}
				}
			}
			all.Wait()
			if got := peak.Load(); got != test.most {
				t.Errorf("%d at once, want %d", got, test.most)
			}
		})
	}
}

// TestWaitingIsFree: the time limit does not include the wait for a slot.
func TestWaitingIsFree(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(300 * time.Millisecond)
		serving("image/jpeg", []byte("jpeg"))(w, r)
	})
	f := newFetcher(t, Config{PerHost: 1, Total: 2 * time.Second}, h.addr)
	var all sync.WaitGroup
	for i := range 8 { // all fetches together take 2.4 s
		all.Go(func() {
			m, err := f.Fetch(within(t), request(h.under(fmt.Sprintf("/%d.jpg", i))))
			if err != nil {
				t.Error(err)
				return
			}
			m.Close()
		})
	}
	all.Wait()
}

// TestClose: running fetches end. Waiting callers get an error, and so do later callers.
func TestClose(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f := newFetcher(t, Config{}, h.addr)
	answer := make(chan error, 1)
	go func() {
		_, err := f.Fetch(context.Background(), request(h.under("/a.jpg")))
		answer <- err
	}()
	eventually(t, "the host is asked", func() bool { return h.requests.Load() == 1 })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{<-answer, func() error { _, err := f.Fetch(t.Context(), request(h.under("/a.jpg"))); return err }()} {
		if e := puntuale.AsSendError(err); e == nil || e.Kind != puntuale.Transient || e.Reason.Code != reasonLater {
			t.Errorf("after Close: %v", err)
		}
	}
}
