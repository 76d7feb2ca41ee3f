//go:build e2e

package e2e

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStopWithHalfRequests: peers that never complete their requests do not delay a stop.
func TestStopWithHalfRequests(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "puntuale.db"))
	for _, said := range []string{
		"POST /api/client/create?api_key=x HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n{\"a\":",
		"POST /api/client/create HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\"",
		"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /hea", // a second request on the same connection
		"GET /he",
		"",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.terminate(5 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
