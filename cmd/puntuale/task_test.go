package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/metrics"
)

// runTask runs one task for the duration in the argument lasts, and returns the log. The task returns the given
// outcomes in order. When it has returned all of them, it returns the last outcome again each time.
func runTask(t *testing.T, c task, lasts time.Duration, outcomes ...error) (log string, times int, figures string) {
	t.Helper()
	var written bytes.Buffer
	m := metrics.New("test", clock.System())
	synctest.Test(t, func(*testing.T) {
		c.do = func(context.Context) error {
			times++
			return outcomes[min(times, len(outcomes))-1]
		}
		r := startTasks([]task{c}, clock.System(), slog.New(slog.NewTextHandler(&written, nil)), m)
		<-time.After(lasts)
		r.stop()
		r.stop()
	})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return written.String(), times, w.Body.String()
}

func TestTaskIsRepeated(t *testing.T) {
	t.Parallel()
	log, times, _ := runTask(t, task{name: "x", first: time.Hour, every: time.Minute}, time.Hour+10*time.Minute+time.Second, nil)
	if times != 11 || log != "" {
		t.Errorf("done %d times; logged %s", times, log)
	}
}

// TestTaskThatFailsForAnHourIsAnError: a task that keeps failing logs one warning at the first failure, and one error
// after each hour.
func TestTaskThatFailsForAnHourIsAnError(t *testing.T) {
	t.Parallel()
	log, times, figures := runTask(t, task{name: "maintenance", every: time.Minute}, 150*time.Minute+time.Second, errors.New("no such column"))
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

func TestTaskThatWorksAgain(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	log, _, figures := runTask(t, task{name: "refill", every: time.Minute}, time.Hour, away, away, errors.New("locked"), nil)
	if strings.Count(log, "level=WARN") != 2 || strings.Count(log, "works again") != 1 || !strings.Contains(log, "failed_for=3m0s") {
		t.Errorf("logged\n%s", log)
	}
	if !strings.Contains(figures, `puntuale_task_success_timestamp_seconds{task="refill"}`) {
		t.Error("its success has no figure")
	}
}

// TestArchiveSays: a fault of the folder is logged immediately as an error. A fault of the store is logged as a warning.
// Each fault is logged only once.
func TestArchiveSays(t *testing.T) {
	t.Parallel()
	full, away := errors.New("disk full"), puntuale.Unavailable(errors.New("no connection"))
	log, _, _ := runTask(t, task{name: "archive", every: time.Minute, urgent: folderFault}, 30*time.Minute, nil, full, full, away, nil)
	if strings.Count(log, "level=ERROR") != 1 || strings.Count(log, "level=WARN") != 1 || strings.Count(log, "works again") != 1 {
		t.Errorf("logged\n%s", log)
	}
}

// TestRecount: counts that somebody lost come back, beside a running server.
func TestRecount(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("", "recount", "--data", "data"); code != exitFailed || !strings.Contains(said, "nothing to count") {
		t.Errorf("without a database: exit code %d: %s", code, said)
	}
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--sandbox", "--data", "data")
	base := server.logged.waitFor(t, `"url":"([^"]+)"`)
	partner := term.besideServer(t)(t, "", "partner", "create", "--name", "A", "--email", "rossi@example.com", "--password", "una frase lunga", "--json")
	_, body := call(t, "POST", base+"/api/client/create", partner, `{"name":"Studio","email":"a@b","password":"x","phone":"+390212345678"}`)
	key, client := field(t, body, "api_key"), field(t, body, "id_client")
	if status, body := call(t, "POST", base+"/api/messages", key, `{"phone":"3331234567","text":"Ciao"}`); status != http.StatusOK {
		t.Fatal(body)
	}
	counts := func(sent string) func() bool {
		return func() bool {
			_, body := call(t, "GET", base+"/api/results", key, "")
			return strings.Contains(body, `"counting":false`) && strings.Contains(body, `"sent":`+sent)
		}
	}
	eventually(t, "the message is counted", counts("1"))
	db, err := sql.Open("sqlite", filepath.Join(term.dir, "data", "puntuale.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, args := range [][]string{nil, {"--client", client}} {
		if _, err := db.Exec("delete from result_month"); err != nil {
			t.Fatal(err)
		}
		if !counts("0")() {
			t.Error("the counts are not lost")
		}
		if code, said, errs := term.runs("", append([]string{"recount", "--data", "data"}, args...)...); code != exitDone || !strings.Contains(said, "of 1 clients") {
			t.Errorf("recount %v: exit code %d: %s%s", args, code, said, errs)
		}
		eventually(t, "the message is counted again", counts("1"))
	}
	if code, _, said := term.runs("", "recount", "--data", "data", "--client", "999999"); code != exitFailed {
		t.Errorf("a client that is not there: exit code %d: %s", code, said)
	}
}
