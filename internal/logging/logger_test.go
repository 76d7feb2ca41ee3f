package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
)

// TestNoKeyIsLogged logs a real key in many ways, through the real handlers.
func TestNoKeyIsLogged(t *testing.T) {
	t.Parallel()
	for _, side := range []puntuale.Side{puntuale.ClientSide, puntuale.PartnerSide} {
		key, _, err := auth.NewKey(side, "canary", clock.System().Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, terminal := range []bool{false, true} {
			var out bytes.Buffer
			logger := New(&out, terminal, slog.LevelDebug)
			address, err := url.Parse("http://host/api/start/1?api_key=" + key + "&x=1")
			if err != nil {
				t.Fatal(err)
			}
			logger.Info("message "+key, "plain", key)
			logger.Error("failed", "error", fmt.Errorf("call: %w", errors.New(address.String())), "url", address)
			logger.Debug("nested", slog.Group("request", "header", "Bearer "+key, "query", map[string]string{"api_key": key}))
			logger.Warn("struct", "request", struct{ Key *string }{&key}, "list", []string{key}, "bytes", []byte(key))
			logger.With("bound", key).WithGroup("g").Info("bound", "quoted", fmt.Sprintf("%q", key))
			for _, part := range []string{key, key[3:], key[len(key)-12:]} {
				if strings.Contains(out.String(), part) {
					t.Errorf("terminal %v: the key is in the log:\n%s", terminal, out.String())
					break
				}
			}
			if n := strings.Count(out.String(), "…"); n < 7 {
				t.Errorf("terminal %v: only %d of the keys left a trace:\n%s", terminal, n, out.String())
			}
		}
	}
}

// TestOtherTextStays: a text that only resembles a key, or a key's name, is not removed.
func TestOtherTextStays(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	New(&out, false, slog.LevelInfo).Info("check_lock stock_9 back_office", "path", "/api/start/12", "n", 3, "error", errors.New("no api_key given"))
	for _, want := range []string{`"check_lock stock_9 back_office"`, `"/api/start/12"`, `"n":3`, `"no api_key given"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing from %s", want, out.String())
		}
	}
}

// TestPanicIsLogged: a line about a panic has level error and the stack, whoever logs it and at whatever level. Its text has
// neither keys, nor values that may be what people wrote.
func TestPanicIsLogged(t *testing.T) {
	t.Parallel()
	key, _, err := auth.NewKey(puntuale.ClientSide, "canary", clock.System().Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelError} {
		var out bytes.Buffer
		logger := WithoutRepeats(New(&out, false, level), clock.System())
		for _, value := range []any{"index " + key, struct{ Text string }{"Ciao Anna"}} {
			for range 2 {
				logger.With("client_id", 7).Warn("reading failed", "error", fmt.Errorf("read: %w", puntuale.Recovered(func() error { panic(value) })))
			}
		}
		log := out.String()
		if strings.Count(log, `"level":"ERROR"`) != 2 || strings.Count(log, "logger_test.go") < 2 || strings.Count(log, "\n") != 2 {
			t.Errorf("from %v: want two errors with their stacks:\n%s", level, log)
		}
		if strings.Contains(log, key) || strings.Contains(log, "Anna") {
			t.Errorf("a secret is in the log:\n%s", log)
		}
		out.Reset()
		logger.Warn("reading failed", "error", errors.New("away"))
		if written := out.Len() > 0; written != (level == slog.LevelInfo) {
			t.Errorf("from %v: another warning: %q", level, out.String())
		}
	}
}
