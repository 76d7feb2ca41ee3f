package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/httpkit"
)

// TestOutageIsTwoLines refuses many calls in the same way as the API, and answers some.
func TestOutageIsTwoLines(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	now := clock.NewFake(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	logger := New(&written, false, slog.LevelInfo)
	o := &Outage{clock: now, logger: logger}
	watching := o.Watching(logger).With("a", 1).WithGroup("g")
	refuse := func(cause string) {
		httpkit.NewProblem(t.Context(), watching, puntuale.Unavailable(errors.New(cause)))
	}
	lines := func() []string { return strings.Split(strings.TrimSpace(written.String()), "\n") }
	refuse("first cause")
	for range 99 {
		now.Advance(time.Second)
		refuse("later cause")
		o.Answered("POST /api/start/{id_sequenza}", http.StatusOK) // the store works only sometimes
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "first cause") {
		t.Fatalf("while it lasts:\n%s", written.String())
	}
	now.Advance(calm)
	o.Answered("GET /openapi.json", http.StatusOK)
	o.Answered("POST /api/stop/{id_sequenza}", http.StatusServiceUnavailable)
	if got := lines(); len(got) != 1 {
		t.Fatalf("what does not ask the store ends it:\n%s", written.String())
	}
	o.Answered("GET /api/sequences", http.StatusOK)
	o.Answered("GET /api/sequences", http.StatusOK)
	o.Stopped()
	if got := lines(); len(got) != 2 || !strings.Contains(got[1], `"refused":100`) || !strings.Contains(got[1], `"lasted":"1m44s"`) {
		t.Fatalf("at its end:\n%s", written.String())
	}
	refuse("next cause")
	o.Stopped()
	if got := lines(); len(got) != 4 || !strings.Contains(got[2], "next cause") || !strings.Contains(got[3], `"refused":1`) {
		t.Errorf("the next one:\n%s", written.String())
	}
}
