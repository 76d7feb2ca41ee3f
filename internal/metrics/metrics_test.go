package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// TestMetersEveryFigure calls each method once, and looks for the figure at /metrics.
func TestMetersEveryFigure(t *testing.T) {
	t.Parallel()
	m := New("test", clock.System())
	figures := m
	figures.Late(30 * time.Millisecond)
	figures.Late(-time.Second)
	figures.Outcome("sandbox", "sent", 3)
	figures.Queue(7, 2)
	figures.CapRefused(4)
	m.FileStorageFailed()
	figures.Batch("start", 12, 3*time.Millisecond)
	figures.Deadlock()
	figures.Fenced(5)
	m.Attempted("gone")
	m.EventBacklog(puntuale.OutboxBacklog{Unnumbered: 3, Waiting: 4, Oldest: 90 * time.Second, Event: 100 * time.Second, Disabled: 2})
	m.MailWaits(70 * time.Second)
	m.Request("POST /api/start/{id_sequenza}", http.StatusOK, time.Millisecond)
	m.Request("", http.StatusNotFound, time.Millisecond)

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`puntuale_lateness_seconds_bucket{le="0.02"} 1`,
		`puntuale_lateness_seconds_bucket{le="0.05"} 2`,
		`puntuale_lateness_seconds_count 2`,
		`puntuale_outcomes_total{connector="sandbox",outcome="sent"} 3`,
		`puntuale_queue_messages 7`,
		`puntuale_queue_sessions 2`,
		`puntuale_cap_refusals_total 4`, `puntuale_file_storage_failures_total 1`,
		`puntuale_batch_size_bucket{operation="start",le="20"} 1`,
		`puntuale_batch_seconds_count{operation="start"} 1`,
		`puntuale_deadlocks_total 1`,
		`puntuale_fenced_total 5`,
		`puntuale_http_requests_total{route="POST /api/start/{id_sequenza}",status="200"} 1`,
		`puntuale_http_requests_total{route="(none)",status="404"} 1`,
		`puntuale_http_request_seconds_count{route="(none)"} 1`,
		`puntuale_event_attempts_total{result="gone"} 1`,
		`puntuale_event_attempts_total{result="delivered"} 0`,
		`puntuale_event_backlog{state="unnumbered"} 3`,
		`puntuale_event_backlog{state="waiting"} 4`,
		`puntuale_event_oldest_due_seconds 90`,
		`puntuale_event_oldest_seconds 100`,
		`puntuale_mail_oldest_seconds 70`,
		`puntuale_webhooks_disabled 2`,
		`go_goroutines `,
		`process_open_fds `,
	} {
		if !strings.Contains(w.Body.String(), "\n"+want) {
			t.Errorf("%s is missing", want)
		}
	}
}
