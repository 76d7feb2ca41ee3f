package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/httpkit/admission"
)

// heldServer is a server whose handler reads the body and then waits until the test releases it.
func heldServer(t *testing.T) (s *server, handling <-chan struct{}, release chan struct{}) {
	t.Helper()
	began, release := make(chan struct{}, 8), make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = &server{
		open: admission.NewConnectionLimiter(0, nil), clock: clock.System(), within: time.Minute, listener: l, served: make(chan error, 1),
		control: control.New(control.Config{Clock: clock.System()}),
	}
	s.http = &http.Server{
		Handler: s.open.Watch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- struct{}{}
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			<-release
			if r.Context().Err() != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})),
		ConnContext: s.open.Began, ConnState: s.open.Changed,
	}
	go func() { s.served <- s.http.Serve(l) }()
	t.Cleanup(func() { _ = s.http.Close() })
	return s, began, release
}

// sends opens a connection and writes a text. It returns a reader of the answer.
func sends(t *testing.T, addr, text string) *bufio.Reader {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(conn)
}

func answers(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestStopGivesUpHalves: a stop soon closes the connections of incomplete requests. It waits until complete requests
// are answered.
func TestStopGivesUpHalves(t *testing.T) {
	t.Parallel()
	s, handling, release := heldServer(t)
	addr := s.listener.Addr().String()
	get := sends(t, addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	post := sends(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nwhole")
	halfBody := sends(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nhalf ")
	for range 3 {
		<-handling
	}
	halfHeader := sends(t, addr, "POST / HTTP/1.1\r\nHo")
	nothing := sends(t, addr, "")
	ended := make(chan struct{})
	go func() { s.finishRequests(context.Background()); close(ended) }()

	if got := answers(t, halfBody); got != http.StatusBadRequest {
		t.Errorf("half a body is answered %d", got)
	}
	for name, r := range map[string]*bufio.Reader{"half a header": halfHeader, "nothing": nothing} {
		if rest, err := io.ReadAll(r); err == nil && strings.Contains(string(rest), "200") {
			t.Errorf("%s is answered %s", name, rest)
		}
	}
	select {
	case <-ended:
		t.Error("ended before the complete requests were answered")
	default:
	}
	close(release)
	for name, r := range map[string]*bufio.Reader{"GET": get, "POST": post} {
		if got := answers(t, r); got != http.StatusOK {
			t.Errorf("a complete %s is answered %d", name, got)
		}
	}
	<-ended
}

// TestStopWithHalfARequest does the same as TestStopGivesUpHalves with the whole command.
func TestStopWithHalfARequest(t *testing.T) {
	t.Parallel()
	server := start(t, newConsole(t, nil), "serve", "--addr", "127.0.0.1:0", "--stop-within", "9m")
	addr := server.logged.waitFor(t, `"url":"http://([^"]+)"`)
	half := sends(t, addr, "POST /api/client/create?api_key=x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{\"a\":")
	header := sends(t, addr, "GET /readyz HTTP/1.1\r\nHost")
	if code := server.end(); code != exitDone {
		t.Errorf("exit code %d: %s", code, server.logged.String())
	}
	for _, r := range []*bufio.Reader{half, header} {
		_, _ = io.ReadAll(r) // the server closes the connection
	}
}

// TestConnectionsSetting: with --connections 16, a seventeenth connection makes the server close the connection that
// has waited longest.
func TestConnectionsSetting(t *testing.T) {
	t.Parallel()
	server := start(t, newConsole(t, nil), "serve", "--addr", "127.0.0.1:0", "--connections", "16")
	addr := server.logged.waitFor(t, `"url":"http://([^"]+)"`)
	first := sends(t, addr, "GET / HTTP/1.1\r\nHost:")
	for range 16 {
		sends(t, addr, "GET / HTTP/1.1\r\nHost:")
	}
	began := time.Now()
	if rest, err := io.ReadAll(first); len(rest) > 0 || time.Since(began) > 4*time.Second { // the connection must close before the header's deadline
		t.Errorf("the first connection ended after %v with %q, %v", time.Since(began), rest, err)
	}
}
