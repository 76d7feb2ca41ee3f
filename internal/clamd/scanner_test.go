package clamd_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"puntuale"
	"puntuale/internal/clamd"
	"puntuale/internal/clamd/clamdtest"
)

// TestScan: a file arrives whole, in chunks, whatever its length, over TCP and over a unix socket; a virus is named.
func TestScan(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", filepath.Join(t.TempDir(), "clamd.sock")} {
		server := clamdtest.New(t, address)
		s := clamd.Scanner{Address: server.Address}
		if err := s.Ping(t.Context()); err != nil || server.Pings() != 1 {
			t.Errorf("ping: %v", err)
		}
		for i, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
			content := make([]byte, size)
			_, _ = rand.Read(content)
			if finding, err := s.Scan(t.Context(), iotest.OneByteReader(bytes.NewReader(content[:min(size, 70_000)]))); finding != "" || err != nil {
				t.Errorf("%d bytes: %q, %v", size, finding, err)
			}
			if got := server.Scanned(); len(got) != i+1 || !bytes.Equal(got[i], content[:min(size, 70_000)]) {
				t.Fatalf("%d bytes did not arrive", size)
			}
		}
		if finding, err := s.Scan(t.Context(), strings.NewReader("text "+clamdtest.Virus)); finding != clamdtest.Finding || err != nil {
			t.Errorf("a virus: %q, %v", finding, err)
		}
	}
}

// TestScanFails: whatever goes wrong, a file never counts as clean, and every answer is bounded.
func TestScanFails(t *testing.T) {
	t.Parallel()
	server := clamdtest.New(t, "127.0.0.1:0")
	s := clamd.Scanner{Address: server.Address}
	scan := func(what string, code puntuale.Code, content io.Reader) string {
		t.Helper()
		finding, err := s.Scan(t.Context(), content)
		if puntuale.CodeOf(err) != code {
			t.Errorf("%s: %q, %v, want %q", what, finding, err, code)
		}
		return finding
	}
	for _, answer := range []string{"stream: OK", "ok\x00", "stream: OK \x00", "stream: Can't allocate memory ERROR\x00", "\x00", strings.Repeat("x", 5<<10) + "\x00", "COMMAND READ TIMED OUT\x00"} {
		server.Change(func(s *clamdtest.Server) { s.Answer = answer })
		scan(answer[:min(len(answer), 40)], puntuale.CodeUnavailable, strings.NewReader("x"))
	}
	server.Change(func(s *clamdtest.Server) { s.Answer = "stream: " + strings.Repeat("\u202e\x1b[2J", 500) + " FOUND\x00" })
	if finding := scan("a hostile name", "", strings.NewReader("x")); len(finding) != 100 || strings.ContainsAny(finding, "\x1b\u202e") {
		t.Errorf("finding %q", finding)
	}
	server.Change(func(s *clamdtest.Server) { s.Answer, s.Limit = "", 100_000 })
	scan("beyond the limit", puntuale.CodeTooLarge, bytes.NewReader(make([]byte, 8<<20)))
	broken := errors.New("broken")
	if _, err := s.Scan(t.Context(), io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a file that breaks off: %v", err)
	}
	if n := len(server.Scanned()); n != 8 {
		t.Errorf("%d files came whole", n)
	}
	server.Change(func(s *clamdtest.Server) { s.Hang = true })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Scan(ctx, strings.NewReader("x")); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Errorf("no answer: %v", err)
	}
	server.Stop()
	if err := s.Ping(t.Context()); err == nil {
		t.Error("nobody is there, but answers")
	}
	_, err := s.Scan(t.Context(), strings.NewReader("x"))
	if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeUnavailable || e.RetryAfter == 0 {
		t.Errorf("nobody is there: %v", err)
	}
}
