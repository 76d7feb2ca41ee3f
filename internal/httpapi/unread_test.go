package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A refusal that does not depend on the body does not wait for the body. The test sends half of the body, and never
// sends the rest.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	key := s.newClient("a@x", "full")
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		name, line, key string
		length          int
		status          int
	}{
		{"no key", "POST /api/start/1", "", 100_000, 401},
		{"a wrong key", "POST /api/start/1", "ck_x", 100, 401},
		{"the wrong side", "POST /api/client/create", key, 1000, 403},
		{"too large", "POST /api/start/1", key, 2 << 20, 413},
		{"no such path", "POST /api/nothing", key, 1000, 404},
		{"no such method", "PATCH /api/start/1", key, 1000, 405},
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{\"phone\":%s",
			c.line, c.key, c.length, strings.Repeat(" ", 10))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else {
			if answer.StatusCode != c.status || !answer.Close {
				t.Errorf("%s: %d, close %t", c.name, answer.StatusCode, answer.Close)
			}
			_ = answer.Body.Close()
		}
		_ = conn.Close()
	}
}

// Some callers read the answer only after they have sent the whole body. They must still get the answer. The server
// does not wait long for a caller that stops sending.
func TestRefusalOfALargeBodyIsRead(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	key := s.newClient("a@x", "full")
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	large := strings.Repeat(" ", 20<<20)
	for _, c := range []struct {
		name, key, length string
		status            int
	}{
		{"no key", "", fmt.Sprintf("Content-Length: %d", len(large)), 401},
		{"too large", key, fmt.Sprintf("Content-Length: %d", len(large)), 413},
		{"too large, of an unknown length", key, fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x", len(large)), 413},
		{"cut short", key, fmt.Sprintf("Content-Length: %d", len(large)+1), 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			head, rest := "\r\n\r\n", ""
			if strings.Contains(c.length, "chunked") {
				head, rest = "\r\n", "\r\n0\r\n\r\n"
			}
			if _, err := io.WriteString(conn, "POST /api/start/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+c.key+"\r\n"+c.length+head+large+rest); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != c.status || !strings.Contains(string(body), "request_id") {
				t.Errorf("%d %s, %v", answer.StatusCode, body, err)
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection is held open")
			}
		})
	}
}
