package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale/internal/clock"
)

func TestBacklogFigures(t *testing.T) {
	t.Parallel()
	now := clock.NewFake(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC))
	m := New("test", now)
	shown := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	if strings.Contains(shown(), "\npuntuale_backlog_") {
		t.Error("it is shown before it was counted")
	}
	m.Backlog(now.Now(), Backlog{Messages: 135_000, Oldest: now.Now().Add(-time.Minute)}, Backlog{})
	now.Advance(10 * time.Second)
	m.Delivered("official", "POST /webhooks/official/{id}", http.StatusServiceUnavailable)
	m.Delivered("official", "POST /webhooks/official/{id}", http.StatusUnauthorized)
	m.Delivered("official", "GET /webhooks/official/{id}", http.StatusOK)
	text := shown()
	for _, want := range []string{
		`puntuale_backlog_messages{session="ready"} 135000`, `puntuale_backlog_oldest_seconds{session="ready"} 70`,
		`puntuale_backlog_oldest_seconds{session="not_linked"} 0`, `puntuale_backlog_age_seconds 10`,
		`puntuale_webhook_deliveries_total{network="official",result="failed"} 1`,
		`puntuale_webhook_deliveries_total{network="official",result="refused"} 1`,
		`puntuale_webhook_deliveries_total{network="official",result="accepted"} 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}
