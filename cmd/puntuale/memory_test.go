package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/hook"
	"puntuale/internal/httpapi/docs"
	"puntuale/internal/httpkit"
	"puntuale/internal/metrics"
	"puntuale/internal/web"
)

// TestEveryRouteIsInTheTable compares the table of testdata/routes.md with the routes of the API, the dashboards,
// the webhooks and the server itself. A new route needs a row in the table. The row says how the route
// checks its caller first, and what it may read and build in memory.
func TestEveryRouteIsInTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/routes.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Z]+ [^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			if said[m[1]] {
				t.Errorf("%s is in the table twice", m[1])
			}
			said[m[1]] = true
		}
		for _, cell := range cells[2:5] {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("a cell is empty: %s", line)
			}
		}
	}
	server := start(t, newConsole(t, nil), "serve", "--addr", "127.0.0.1:0")
	existing := everyRoute(t, server.logged.waitFor(t, `"url":"(http://[^"]+)"`))
	for _, route := range slices.Sorted(maps.Keys(existing)) {
		if !said[route] {
			t.Errorf("%s is not in the table", route)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(said)) {
		if !existing[route] {
			t.Errorf("%s is in the table, and there is no such route", route)
		}
	}
}

// everyRoute returns all routes that a server answers.
func everyRoute(t *testing.T, base string) map[string]bool {
	t.Helper()
	existing := map[string]bool{}
	for _, path := range []string{docs.DocumentPath, docs.OlderDocumentPath, docs.PagePath} {
		existing["GET "+path] = true
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+docs.DocumentPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(content, &document); err != nil || len(document.Paths) == 0 {
		t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			existing[strings.ToUpper(method)+" "+path] = true
		}
	}
	for _, pattern := range web.Patterns() {
		existing[pattern] = true
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		existing[method+" "+puntuale.OfficialWebhooks] = true
	}
	existing["POST "+puntuale.GatewayWebhooks], existing["POST "+puntuale.ChatwootWebhooks] = true, true
	existing[hook.Route], existing[fileRoute] = true, true
	for path := range ownRoutes(&httpkit.Health{}, metrics.New("test", clock.System())) {
		existing["GET "+path] = true
	}
	return existing
}
