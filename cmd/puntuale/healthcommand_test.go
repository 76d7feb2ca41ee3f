package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"puntuale/internal/clock"
	"puntuale/internal/httpkit"
)

// TestHealthAsksAServer: the command succeeds while the server runs, and fails after it stopped.
func TestHealthAsksAServer(t *testing.T) {
	t.Parallel()
	server := start(t, newConsole(t, nil), "serve", "--sandbox", "--addr", "127.0.0.1:0")
	addr := server.logged.waitFor(t, `"url":"http://([^"]+)"`)
	asker := newConsole(t, map[string]string{"PUNTUALE_ADDR": addr, "HTTP_PROXY": "http://192.0.2.1:9"})
	if code := asker.run(context.Background(), []string{"health"}); code != exitDone || asker.out.String() != "ready\n" {
		t.Errorf("exit code %d, printed %q, %q", code, asker.out.String(), asker.errs.String())
	}
	server.end()
	if code := asker.run(context.Background(), []string{"health"}); code != exitFailed || !strings.Contains(asker.errs.String(), "not ready") {
		t.Errorf("without a server: exit code %d, %q", code, asker.errs.String())
	}
	if code := asker.run(context.Background(), []string{"health", "--addr", "nowhere"}); code != exitUsage {
		t.Errorf("an address that is none: exit code %d, %q", code, asker.errs.String())
	}
}

// TestHealthSaysWhatIsWrong: the command prints the sentence of /readyz.
func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := httpkit.NewHealth(httpkit.HealthConfig{Now: clock.System().Now, Check: func(context.Context) error { return errors.New("gone") },
		Working: func() error { return nil }, Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(http.HandlerFunc(h.Ready))
	defer server.Close()
	term := newConsole(t, nil)
	code := term.run(context.Background(), []string{"health", "--addr", server.Listener.Addr().String()})
	if want := "puntuale: not ready: the store does not answer\n"; code != exitFailed || term.errs.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, term.errs.String(), want)
	}
}

// TestHealthWaits: the command asks until the server is ready, and gives up when it is interrupted.
func TestHealthWaits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	term := newConsole(t, nil)
	args := []string{"health", "--addr", server.Listener.Addr().String(), "--wait", "1m"}
	if code := term.run(context.Background(), args); code != exitDone || asked.Load() != 3 {
		t.Errorf("exit code %d after %d questions, %q", code, asked.Load(), term.errs.String())
	}
	asked.Store(-1 << 20)
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if code := term.run(stopped, args); code != exitFailed {
		t.Errorf("told to stop: exit code %d", code)
	}
}

func TestAskedAt(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "[::1]:80",
		"10.0.0.5:8080": "10.0.0.5:8080", "node1:8080": "node1:8080", "[::1]:8080": "[::1]:8080",
	} {
		if got := askedAt(addr); got != want {
			t.Errorf("%s is asked at %s, want %s", addr, got, want)
		}
		if _, _, err := net.SplitHostPort(want); err != nil {
			t.Error(err)
		}
	}
}
