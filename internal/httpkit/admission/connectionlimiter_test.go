package admission_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/httpkit/admission"
)

// limited is a server that allows three connections. Its handler waits until the test releases it.
type limited struct {
	*admission.ConnectionLimiter
	addr     string
	closed   atomic.Int64 // how many connections the limiter closed to make room
	handling chan struct{}
	release  chan struct{}
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &limited{addr: l.Addr().String(), handling: make(chan struct{}, 8), release: make(chan struct{})}
	s.ConnectionLimiter = admission.NewConnectionLimiter(3, func(n int) { s.closed.Add(int64(n)) })
	server := &http.Server{
		Handler: s.Watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			s.handling <- struct{}{}
			<-s.release
		})),
		ConnContext: s.Began, ConnState: s.Changed, ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// sends opens a connection and writes a text. It returns a reader for the answer.
func (s *limited) sends(t *testing.T, text string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(conn)
}

// counted waits until there are n connections.
func (s *limited) counted(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); s.Count() != n; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, not %d", s.Count(), n)
		}
	}
}

// gone waits until the server has closed the connection.
func gone(t *testing.T, r *bufio.Reader) {
	t.Helper()
	if _, err := r.ReadByte(); err == nil {
		t.Error("the connection is open")
	}
}

// If a new connection exceeds the limit, the limiter closes the connection that has waited longest. A connection with a
// running request stays open.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := newLimited(t)
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	answered := s.sends(t, request)
	<-s.handling
	idle := s.sends(t, "")
	slow := s.sends(t, "GET / HTTP/1.1\r\nHost:")
	s.counted(t, 3)
	fresh := s.sends(t, request)
	<-s.handling
	gone(t, idle)
	s.counted(t, 3)
	again := s.sends(t, request)
	<-s.handling
	gone(t, slow)
	close(s.release)
	for _, r := range []*bufio.Reader{answered, fresh, again} {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%d", response.StatusCode)
		}
	}
	if n := s.closed.Load(); n != 2 {
		t.Errorf("%d were closed", n)
	}
}

// TestHeaviestCallerLosesConnections: if there are too many connections, a caller with many loses one. A caller with few
// keeps its own, even if they have waited longer. The same holds for partners.
func TestHeaviestCallerLosesConnections(t *testing.T) {
	t.Parallel()
	l := admission.NewConnectionLimiter(8, nil)
	open := map[string][]net.Conn{}
	begin := func(name string, partner puntuale.PartnerID, client int64) {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		admission.Owned(l.Began(t.Context(), here), partner, admission.CallerKey{Side: puntuale.ClientSide, ID: client})
		open[name] = append(open[name], there)
	}
	left := func(name string) (n int) {
		for _, conn := range open[name] {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				n++
			}
		}
		return n
	}
	begin("victim", 1, 1)
	begin("victim", 1, 1)
	for range 9 {
		begin("hostile", 1, 2)
	}
	if a, b := left("victim"), left("hostile"); a != 2 || b != 6 {
		t.Errorf("the victim has %d connections, the hostile client %d", a, b)
	}
	l = admission.NewConnectionLimiter(8, nil)
	begin("other", 3, 3)
	begin("other", 3, 3)
	for i := range 12 { // clients of one partner, each with one connection
		begin("many", 2, int64(10+i))
	}
	if a, b := left("other"), left("many"); a != 2 || b != 6 {
		t.Errorf("the victim has %d connections, the clients of the hostile partner %d", a, b)
	}
}
