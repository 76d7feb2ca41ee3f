package admission_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

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
