package httpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/httpkit"
)

// serve sends one request to a handler behind Wrap. It returns the answer and the log.
func serve(t *testing.T, h http.HandlerFunc, r *http.Request) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := httptest.NewRecorder()
	now := func() time.Time { return time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC) }
	httpkit.Wrap(h, httpkit.Config{Logger: logger, Now: now}).ServeHTTP(w, r)
	return w, log.String()
}

// answerWith returns a handler that answers with err.
func answerWith(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		httpkit.NewProblem(r.Context(), slog.New(slog.DiscardHandler), err).Write(w)
	}
}

func request(id string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/start/12?api_key=ck_secret", nil)
	r.Header.Set(httpkit.RequestIDHeader, id)
	return r
}

func TestProblem(t *testing.T) {
	t.Parallel()
	reached := &puntuale.Error{Code: puntuale.CodeCapReached, Reason: puntuale.Because("caller.cap_reached"),
		Usage: &puntuale.Usage{Cap: 100, Used: 130}, RetryAfter: 90*time.Second + 1}
	for name, c := range map[string]struct {
		err    error
		status int
		body   string
		header map[string]string
	}{
		"invalid": {
			puntuale.Invalid(puntuale.Fault{Location: "body.phone", Code: puntuale.FaultRequired},
				puntuale.Fault{Location: "query.limit", Code: "fault.not_number", Value: "<many>"}), 422,
			`{"title":"Unprocessable Entity","status":422,"detail":"the request is not valid","code":"invalid","errors":[` +
				`{"location":"body.phone","message":"is required"},` +
				`{"location":"query.limit","message":"is not a number","value":"<many>"}],"request_id":"r1"}`, nil,
		},
		"wrapped": {
			fmt.Errorf("read sequence 7: %w", puntuale.NotFound(puntuale.NoSequence)), 404,
			`{"title":"Not Found","status":404,"detail":"sequence not found","code":"not_found","request_id":"r1"}`, nil,
		},
		"cap": {
			reached, 429,
			`{"title":"Too Many Requests","status":429,"detail":"the daily cap is reached","code":"cap_reached","request_id":"r1",` +
				`"daily_api_cap":100,"daily_api_used":130,"daily_api_remaining":0}`, map[string]string{"Retry-After": "91"},
		},
		"unauthorized": {
			&puntuale.Error{Code: puntuale.CodeUnauthorized, Reason: puntuale.Quoted("no key")}, 401,
			`{"title":"Unauthorized","status":401,"detail":"no key","code":"unauthorized","request_id":"r1"}`,
			map[string]string{"WWW-Authenticate": `Bearer realm="puntuale"`},
		},
		"unavailable": {
			puntuale.Unavailable(errors.New("dial 10.0.0.1")), 503,
			`{"title":"Service Unavailable","status":503,"detail":"the store cannot be reached","code":"unavailable","request_id":"r1"}`,
			map[string]string{"Retry-After": "1"},
		},
		"anything else": {
			errors.New("secret internals"), 500,
			`{"title":"Internal Server Error","status":500,"detail":"internal error","code":"internal","request_id":"r1"}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := serve(t, answerWith(c.err), request("r1"))
			if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.body {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, c.status, c.body)
			}
			if got := w.Header().Get("Content-Type"); got != httpkit.ProblemType {
				t.Errorf("content type %q", got)
			}
			for name, want := range c.header {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// An answer shows only the beginning of a long value, and lists a bounded number of faults.
func TestProblemIsBounded(t *testing.T) {
	t.Parallel()
	faults := make([]puntuale.Fault, 5000)
	for i := range faults {
		faults[i] = puntuale.Fault{Location: "body." + strings.Repeat("m", 5000), Code: "is.unknown", Value: strings.Repeat("è", 5000)}
	}
	w, _ := serve(t, answerWith(puntuale.Invalid(faults...)), request("r1"))
	if n := w.Body.Len(); n > 1<<20 {
		t.Errorf("the answer is %d bytes long", n)
	}
	if !strings.Contains(w.Body.String(), strings.Repeat("è", 100)+"…") {
		t.Error("the value is not shown at all")
	}
}

// At most 100 faults are listed. One more entry says how many faults are left out.
func TestProblemListsTheFirstFaults(t *testing.T) {
	t.Parallel()
	for n, more := range map[int]string{1: "", 100: "", 101: "and 1 more fault", 5000: "and 4900 more faults"} {
		w, _ := serve(t, answerWith(puntuale.Invalid(make([]puntuale.Fault, n)...)), request("r1"))
		var p httpkit.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		last := p.Errors[len(p.Errors)-1].Message
		if more == "" && len(p.Errors) != n || more != "" && (len(p.Errors) != 101 || !strings.HasPrefix(last, more)) {
			t.Errorf("%d faults: %d are listed, the last %q", n, len(p.Errors), last)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for code, want := range map[puntuale.Code]int{
		puntuale.CodeUnauthorized: 401, puntuale.CodeForbidden: 403, puntuale.CodeTooLarge: 413, puntuale.CodeUnreadable: 400,
		puntuale.CodeNotFound: 404, httpkit.CodeMethod: 405, puntuale.CodeInvalid: 422, puntuale.CodeConflict: 409,
		puntuale.CodeBusy: 409, puntuale.CodeCapReached: 429, puntuale.CodeRateLimited: 429, puntuale.CodeUnavailable: 503,
		puntuale.CodeInternal: 500, "": 500, "news": 500,
	} {
		if got := httpkit.Status(code); got != want {
			t.Errorf("Status(%q) = %d, want %d", code, got, want)
		}
	}
}

// A caller that closed the connection is not an error of the server.
func TestProblemOfACallerWhoLeft(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := httpkit.NewProblem(ctx, slog.New(slog.NewTextHandler(&log, nil)), fmt.Errorf("query: %w", ctx.Err()))
	if p.Status != http.StatusServiceUnavailable || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%d, logged %s", p.Status, log.String())
	}
}
