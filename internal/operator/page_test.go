package operator

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale/internal/doctor"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// Sample is a report with something of everything.
func sample() Report {
	return Report{
		Version: "1.2.3", Database: "db", Roles: []string{"api", "dispatch"},
		Findings: []doctor.Finding{{Subject: "backup", Level: doctor.Fault, Text: "The last good backup is 3 days old.", Do: "Look <here>."}, {Subject: "key", Level: doctor.OK, Text: "fine"}},
		Figures:  []Count{{Name: "due, can leave", Value: "1,204", Note: "of the whole installation", Bad: true}},
		Nodes:    []Row{{Cells: []string{"7", "5s", "12"}}}, Servers: []Row{{Cells: []string{"0.9.1", "api,web", "2"}, Bad: true}}, Sessions: []Row{{Cells: []string{"Socket", "logged_out", "3"}, Bad: true}},
		Tasks: []Row{{Cells: []string{"start", "9", "1ms", "0"}}},
	}
}

// TestPage: faults stand at the top. The page loads its style only, and has no script. A report is used for 15 seconds.
func TestPage(t *testing.T) {
	t.Parallel()
	now, collected := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC), 0
	page := New(Config{Collect: func(context.Context) Report { collected++; return sample() }, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	w := get(t, page, Path)
	text := w.Body.String()
	for _, want := range []string{`<p class="line fault"><strong>backup:</strong> The last good backup is 3 days old. Look &lt;here&gt;.</p>`, "<title>Puntuale (1)</title>", "1,204", "logged_out", "1.2.3", `<tr class="warning"><td>0.9.1</td><td>api,web</td><td>2</td></tr>`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if w.Header().Get("Content-Security-Policy") != policy || strings.Contains(text, "<script") || strings.Contains(text, "style=") {
		t.Errorf("%v\n%s", w.Header(), text)
	}
	if style := get(t, page, stylePath); style.Header().Get("Content-Type") != "text/css; charset=utf-8" || style.Body.Len() == 0 {
		t.Errorf("the style: %v", style.Header())
	}
	get(t, page, Path)
	now = now.Add(16 * time.Second)
	get(t, page, Path)
	if collected != 2 {
		t.Errorf("collected %d times", collected)
	}
	empty := New(Config{Collect: func(context.Context) Report { return Report{} }, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	if text := get(t, empty, Path).Body.String(); !strings.Contains(text, "No node sends.") {
		t.Error(text)
	}
}
