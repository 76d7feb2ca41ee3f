package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"puntuale/internal/clock"
)

// chored runs one chore, whose outcomes come one after the other and then stay the last, for a time, and returns the log.
func chored(t *testing.T, c chore, lasts time.Duration, outcomes ...error) (log string, times int, figures string) {
	t.Helper()
	var written bytes.Buffer
	m := newMeter()
	synctest.Test(t, func(*testing.T) {
		c.do = func(context.Context) error {
			times++
			return outcomes[min(times, len(outcomes))-1]
		}
		r := startChores([]chore{c}, clock.System(), slog.New(slog.NewTextHandler(&written, nil)), m)
		time.Sleep(lasts)
		r.stop()
		r.stop()
	})
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return written.String(), times, w.Body.String()
}

func TestChoreIsRepeated(t *testing.T) {
	t.Parallel()
	log, times, _ := chored(t, chore{name: "x", first: time.Hour, every: time.Minute}, time.Hour+10*time.Minute+time.Second, nil)
	if times != 11 || log != "" {
		t.Errorf("done %d times; logged %s", times, log)
	}
}

// TestChoreThatFailsForAnHourIsAnError: before, a minute's failure was a warning each minute, for ever.
func TestChoreThatFailsForAnHourIsAnError(t *testing.T) {
	t.Parallel()
	log, times, figures := chored(t, chore{name: "maintenance", every: time.Minute}, 150*time.Minute+time.Second, errors.New("no such column"))
	if warned, told := strings.Count(log, "level=WARN"), strings.Count(log, "level=ERROR"); warned != 1 || told != 2 {
		t.Errorf("%d warnings, %d errors:\n%s", warned, told, log)
	}
	if times != 151 || !strings.Contains(figures, `puntuale_task_failures_total{task="maintenance"} 151`) {
		t.Errorf("%d failures were counted otherwise:\n%s", times, figures)
	}
	if strings.Contains(figures, `puntuale_task_success_timestamp_seconds{`) {
		t.Error("it succeeded, by the figures")
	}
}

func TestChoreThatWorksAgain(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	log, _, figures := chored(t, chore{name: "refill", every: time.Minute}, time.Hour, away, away, errors.New("locked"), nil)
	if strings.Count(log, "level=WARN") != 2 || strings.Count(log, "works again") != 1 || !strings.Contains(log, "failed_for=3m0s") {
		t.Errorf("logged\n%s", log)
	}
	if !strings.Contains(figures, `puntuale_task_success_timestamp_seconds{task="refill"}`) {
		t.Error("its success has no figure")
	}
}

func TestUrgentChoreIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	log, _, _ := chored(t, chore{name: "archive", every: time.Minute, urgent: func(error) bool { return true }}, 30*time.Minute, errors.New("read-only folder"))
	if strings.Count(log, "level=ERROR") != 1 || strings.Count(log, "\n") != 1 {
		t.Errorf("logged\n%s", log)
	}
}
