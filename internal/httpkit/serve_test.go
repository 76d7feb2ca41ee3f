package httpkit_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"puntuale/internal/httpkit"
)

func TestRequestID(t *testing.T) {
	t.Parallel()
	for given, kept := range map[string]bool{
		"abc-1.2_3": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "a b": false, "a\tb": false, "è": false, `"}`: false,
	} {
		var seen string
		w, log := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen = httpkit.RequestID(r.Context()) }, request(given))
		if (seen == given) != kept || seen == "" || w.Header().Get(httpkit.RequestIDHeader) != seen {
			t.Errorf("given %q: %q, answered %q", given, seen, w.Header().Get(httpkit.RequestIDHeader))
		}
		if !strings.Contains(log, `"request_id":"`+seen+`"`) {
			t.Errorf("not in the log: %s", log)
		}
	}
}

// The access log shows the request and the answer. It never shows the key, even if the caller put it in the query or
// the path.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/api/ck_0123secret?api_key=ck_secret&x=1", nil)
	r.Header.Set("Authorization", "Bearer ck_secret")
	_, log := serve(t, func(w http.ResponseWriter, r *http.Request) {
		httpkit.Annotate(r.Context(), slog.String("operation", "test"))
		_, _ = io.WriteString(w, "hello")
	}, r)
	for _, want := range []string{`"method":"GET"`, `"path":"/api/[key]"`, `"status":200`, `"bytes":5`, `"operation":"test"`} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is missing in %s", want, log)
		}
	}
	if strings.Contains(log, "secret") || strings.Count(log, "\n") != 1 {
		t.Errorf("log: %s", log)
	}
}

// A path that matches no operation may contain the secret of an address, written a little wrongly.
func TestAccessLogOfWrongPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"//webhooks/chatwoot/Zm9vYmFyYmF6cXV4MTIzNDU2", "/Hooks/hk_secret", "/webhooks/chatwoot/Zm9vYmFyYmF6cXV4MTIzNDU2/x"} {
		if _, log := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, httptest.NewRequest(http.MethodPost, "http://x"+path, nil)); strings.Contains(log, "Zm9v") ||
			strings.Contains(log, "secret") || !strings.Contains(log, "[key]") {
			t.Errorf("%s: %s", path, log)
		}
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	w, log := serve(t, func(http.ResponseWriter, *http.Request) { panic("secret cause") }, request("r1"))
	want := `{"title":"Internal Server Error","status":500,"detail":"internal error","code":"internal","request_id":"r1"}`
	if w.Code != 500 || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log, "secret cause") || !strings.Contains(log, "serve_test.go") || !strings.Contains(log, `"status":500`) {
		t.Errorf("log: %s", log)
	}
	w, _ = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		panic("too late")
	}, request("r1"))
	if w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("after the header was sent: %d %s", w.Code, w.Body)
	}
	defer func() {
		if reason := recover(); reason != http.ErrAbortHandler { //nolint:errorlint // the test compares exactly this value
			t.Errorf("ErrAbortHandler became %v", reason)
		}
	}()
	serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, request("r1"))
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	w, _ := serve(t, func(http.ResponseWriter, *http.Request) {}, request("r1"))
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestRefusedUnread: a caller that sends its body byte by byte gets a refusal immediately. If the body was read, the
// connection stays open.
func TestRefusedUnread(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(httpkit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.WriteHeader(http.StatusForbidden)
	}), httpkit.Config{Logger: slog.New(slog.DiscardHandler), Now: time.Now}))
	defer s.Close()
	for _, length := range []int{100, 3_000_000} { // net/http itself reads the rest of a body only if the announced length is short
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nx", length)
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%d bytes announced: %v", length, err)
		}
		if a.StatusCode != http.StatusForbidden || !a.Close {
			t.Errorf("%d bytes announced: %d, closes: %v", length, a.StatusCode, a.Close)
		}
	}
	a, err := http.Post(s.URL+"/read", "text/plain", strings.NewReader("x"))
	if err != nil || a.Close {
		t.Errorf("a body that was read: %+v, %v", a, err)
	}
}

// memoryListener gives the server one connection in memory. The connection's deadlines follow the test's clock.
type memoryListener struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *memoryListener) Close() error   { close(l.closed); return nil }
func (l *memoryListener) Addr() net.Addr { return &net.IPAddr{} }

// TestUnreadAnswer: if a caller reads nothing of a long answer, the server soon frees the answer's memory.
func TestUnreadAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &memoryListener{make(chan net.Conn), make(chan struct{})}
		gone := make(chan error, 1)
		server := &http.Server{Handler: httpkit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			gone <- err
		}), httpkit.Config{Logger: slog.New(slog.DiscardHandler), Now: time.Now})} //nolint:gosec // the test needs a server without deadlines of its own
		go func() { _ = server.Serve(l) }()
		here, remote := net.Pipe()
		l.conn <- remote
		began := time.Now()
		_, _ = io.WriteString(here, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		select {
		case err := <-gone:
			if err == nil || time.Since(began) > 15*time.Second {
				t.Errorf("%v, after %v", err, time.Since(began))
			}
		case <-time.After(time.Minute):
			t.Error("the answer still waits for its reader")
		}
		_ = here.Close()
		_ = server.Close()
		<-time.After(time.Minute) // net/http waits for a short time before it closes a connection
	})
}
