package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"puntuale/internal/httpkit"
)

// TestRoutes sends requests that match no operation to the real server. The server never redirects, and all refusals
// have the same form. The test writes the requests as raw text, because an HTTP client would clean the paths.
func TestRoutes(t *testing.T) {
	t.Parallel()
	server := start(t, newConsole(t, nil), "serve", "--addr", "127.0.0.1:0", "--log-level", "debug")
	addr := server.logged.waitFor(t, `"url":"http://([^"]+)"`)
	for _, test := range []struct {
		method, target string
		status         int
		allow          string
	}{
		{"GET", "//api/sequences", 404, ""},
		{"POST", "/api//start/1", 404, ""},
		{"POST", "/api/./start/1", 404, ""},
		{"POST", "/api/a/../start/1", 404, ""},
		{"GET", "/../healthz", 404, ""},
		{"GET", "/healthz//", 404, ""},
		{"GET", "//healthz", 404, ""},
		{"GET", "/nothing", 404, ""},
		{"GET", "/healthz/", 200, ""},
		{"GET", "/readyz/", 200, ""},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"DELETE", "/readyz", 405, "GET, HEAD"},
		{"PUT", "/metrics", 405, "GET, HEAD"},
		{"OPTIONS", "/metrics/", 405, "GET, HEAD"},
	} {
		name := test.method + " " + test.target
		answer := sends(t, addr, fmt.Sprintf("%s %s?api_key=ck_secret HTTP/1.1\r\nHost: x\r\nX-Request-Id: r-1\r\n\r\n", test.method, test.target))
		response, body := readAnswer(t, answer, test.method)
		if response.StatusCode != test.status || response.Header.Get("Location") != "" || response.Header.Get("Allow") != test.allow {
			t.Errorf("%s: %d, Location %q, Allow %q", name, response.StatusCode, response.Header.Get("Location"), response.Header.Get("Allow"))
		}
		if response.Header.Get(httpkit.RequestIDHeader) != "r-1" || strings.Contains(body, "secret") {
			t.Errorf("%s: no request id, or the key is in %s", name, body)
		}
		if test.status == 200 {
			continue
		}
		var problem httpkit.Problem
		if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != test.status || problem.RequestID != "r-1" {
			t.Errorf("%s: answered %s", name, body)
		}
		if got := response.Header.Get("Content-Type"); got != httpkit.ProblemType {
			t.Errorf("%s: content type %s", name, got)
		}
		path := strings.TrimPrefix(test.target, "?")
		if want := fmt.Sprintf(`"path":"%s","status":%d`, path, test.status); !strings.Contains(server.logged.String(), want) {
			t.Errorf("%s: no %s in the log", name, want)
		}
	}
	server.end()
	if strings.Contains(server.logged.String(), "ck_secret") {
		t.Error("the key is in the log")
	}
}

func readAnswer(t *testing.T, r *bufio.Reader, method string) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body strings.Builder
	if _, err := bufio.NewReader(response.Body).WriteTo(&body); err != nil {
		t.Fatal(err)
	}
	return response, body.String()
}
