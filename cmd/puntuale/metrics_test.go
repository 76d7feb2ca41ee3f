package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func answer(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestFiguresApart: with --metrics-addr, only this address answers /metrics. With --access-log 0, the log contains only
// refused calls. If a call's path contains a phone number, the log does not contain the number.
func TestFiguresApart(t *testing.T) {
	t.Parallel()
	server := start(t, newConsole(t, nil), "serve", "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--access-log", "0", "--official-version", "v20.0")
	base := server.logged.waitFor(t, `"url":"(http://[^"]+)"`)
	figures := "http://" + server.logged.waitFor(t, `"serving figures","addr":"([^"]+)"`)
	if status, _ := answer(t, http.MethodGet, base+"/metrics"); status != http.StatusNotFound {
		t.Errorf("the API's address answers %d", status)
	}
	for target, want := range map[string]int{"GET /metrics": 200, "HEAD /metrics/": 200, "POST /metrics": 405, "GET /": 404, "GET /readyz": 404} {
		method, path, _ := strings.Cut(target, " ")
		if status, _ := answer(t, method, figures+path); status != want {
			t.Errorf("%s answers %d, want %d", target, status, want)
		}
	}
	for _, want := range []string{
		`puntuale_ready{part="store"} 1`, `puntuale_ready{part="dispatcher"} 1`, `puntuale_backlog_messages{session="ready"} 0`,
		`puntuale_backlog_oldest_seconds{session="not_linked"} 0`, "puntuale_backlog_age_seconds ", "puntuale_build_info{",
		`puntuale_task_success_timestamp_seconds{task="maintenance"} `, `puntuale_disk_free_bytes{holds="database"} `,
		`puntuale_webhook_deliveries_total{network="official",result="failed"} 0`,
	} {
		for deadline := time.Now().Add(time.Minute); ; {
			_, body := answer(t, http.MethodGet, figures+"/metrics")
			if strings.Contains(body, "\n"+want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("there is no %s in\n%s", want, body)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	answer(t, http.MethodGet, base+"/login")
	answer(t, http.MethodDelete, base+"/api/blacklist/+393331234567")
	answer(t, http.MethodDelete, base+"/api/sequences/7654321")
	answer(t, http.MethodGet, base+"/nothing/+39%20333%201234567")
	server.end()
	log := server.logged.String()
	if strings.Contains(log, "1234567") || strings.Contains(log, "7654321") || strings.Contains(log, "/login") {
		t.Errorf("a number, or a call that was answered, is in the log:\n%s", log)
	}
	for _, want := range []string{`"path":"/api/blacklist/[number]"`, `"route":"DELETE /api/sequences/{id}"`, `"path":"/nothing/[number]"`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "Graph API") {
		t.Error("a server without Official sessions tells of the Graph API's version")
	}
}
