package admission_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/httpkit/admission"
)

// pipes is a listener of connections in memory. Their deadlines follow the test's clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// served runs a test in which peer talks to a server with the deadlines of NewServer. The test's clock moves only while
// all goroutines wait. ended receives the handler's result.
func served(t *testing.T, h func(w http.ResponseWriter, r *http.Request) error, peer func(t *testing.T, conn net.Conn, ended <-chan error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		ended := make(chan error, 1)
		server := admission.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ended <- h(w, r) }), nil)
		go func() { _ = server.Serve(p) }()
		here, remote := net.Pipe()
		p.conns <- remote
		peer(t, here, ended)
		_ = here.Close()
		_ = server.Close()
		<-time.After(time.Minute) // net/http waits for a short time before it closes a connection
	})
}

// drips writes one byte a second until the server closes the connection. It returns the time until then.
func drips(conn net.Conn) time.Duration {
	began := time.Now()
	for {
		if _, err := conn.Write([]byte("x")); err != nil {
			return time.Since(began)
		}
		<-time.After(time.Second)
	}
}

// TestConnectionDeadlines: a peer loses its connection if it sends its header or body byte by byte. The same happens if
// it does not read the answer, or sends no further request.
func TestConnectionDeadlines(t *testing.T) {
	t.Parallel()
	reads := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}
	within := func(t *testing.T, what string, took, least, maxWait time.Duration) {
		t.Helper()
		if took < least || took > maxWait {
			t.Errorf("%s: the connection ended after %v", what, took)
		}
	}
	t.Run("header", func(t *testing.T) {
		t.Parallel()
		served(t, reads, func(t *testing.T, conn net.Conn, _ <-chan error) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nX: ")
			within(t, "a slow header", drips(conn), 4*time.Second, 8*time.Second)
		})
	})
	t.Run("body", func(t *testing.T) {
		t.Parallel()
		served(t, reads, func(t *testing.T, conn net.Conn, _ <-chan error) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
			within(t, "a slow body", drips(conn), 28*time.Second, 35*time.Second)
		})
	})
	t.Run("answer", func(t *testing.T) {
		t.Parallel()
		endless := func(w http.ResponseWriter, _ *http.Request) error {
			for {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return err
				}
			}
		}
		served(t, endless, func(t *testing.T, conn net.Conn, ended <-chan error) {
			began := time.Now()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			<-ended
			within(t, "an answer that nobody takes", time.Since(began), 50*time.Second, 70*time.Second)
		})
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		served(t, reads, func(t *testing.T, conn net.Conn, _ <-chan error) {
			began := time.Now()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
			within(t, "an idle connection", time.Since(began), 100*time.Second, 130*time.Second)
		})
	})
}

// TestReadWithin: the body of an unknown caller must arrive within the time that ReadWithin sets.
func TestReadWithin(t *testing.T) {
	t.Parallel()
	served(t, func(w http.ResponseWriter, r *http.Request) error {
		release := admission.ReadWithin(w, r, 10*time.Second)
		defer release()
		_, err := admission.ReadBody(w, r, admission.MaxBody, nil)
		return err
	}, func(t *testing.T, conn net.Conn, ended <-chan error) {
		began := time.Now()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
		go drips(conn)
		if err := <-ended; puntuale.CodeOf(err) != puntuale.CodeUnreadable {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("the body had %v", took)
		}
	})
}

// TestReadOn: an upload may take much longer than other bodies, but its pieces must keep arriving.
func TestReadOn(t *testing.T) {
	t.Parallel()
	var bytes atomic.Int64
	served(t, func(w http.ResponseWriter, r *http.Request) error {
		n, err := io.Copy(io.Discard, admission.ReadOn(w, r, time.Now))
		bytes.Store(n)
		return err
	}, func(t *testing.T, conn net.Conn, ended <-chan error) {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
		const pieces = 20
		for range pieces {
			_, _ = io.WriteString(conn, strings.Repeat("x", 100))
			<-time.After(20 * time.Second)
		}
		began := time.Now()
		err := <-ended
		if took := time.Since(began); bytes.Load() != 100*pieces || puntuale.CodeOf(err) != puntuale.CodeUnreadable || took > 15*time.Second {
			t.Errorf("%d bytes, %v, after %v more", bytes.Load(), err, took)
		}
	})
}
