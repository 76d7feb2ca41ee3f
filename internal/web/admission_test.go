package web_test

import (
	"context"
	"html"
	"mime/multipart"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/page"
)

// TestPagesKeepToTheLimit: the server limits how many requests it executes at the same time (--calls). Page requests
// are included in this limit. If there are too many, a further page, or part of a page, is refused with a time for the
// next try. The status is 429 if this caller has too many requests, and otherwise 503.
func TestPagesKeepToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: 20 * time.Millisecond, Now: w.clock.Now})
	w.serveAs(page.Config{Admit: admission.Limits{Gate: gate}})
	v := w.visitor(w.clients[puntuale.Staff])
	here := admission.AddressKey(netip.MustParseAddr("127.0.0.1"))
	elsewhere := admission.AddressKey(netip.MustParseAddr("203.0.113.7"))
	part := http.Header{"Hx-Request": {"true"}}
	for _, try := range []struct {
		name   string
		holds  []admission.CallerKey
		header http.Header
		status int
		says   string
	}{
		{"the caller's own", []admission.CallerKey{here}, nil, http.StatusTooManyRequests, "Troppe richieste"},
		{"the caller's own, a part", []admission.CallerKey{here}, part, http.StatusTooManyRequests, ""},
		{"others'", []admission.CallerKey{elsewhere, elsewhere}, nil, http.StatusServiceUnavailable, ""},
		{"nobody's", nil, nil, http.StatusOK, "Messaggi"},
	} {
		var held []*admission.Permit
		for _, who := range try.holds {
			priority := admission.PriorityPrevent // the first call takes the only usual seat; a further call needs this priority, which may use additional seats
			if len(held) == 0 {
				priority = admission.PriorityRead
			}
			pass, _, err := gate.Enter(context.Background(), who, priority)
			w.must(err)
			held = append(held, pass)
		}
		got := v.do(http.MethodGet, w.pages+"/messages", nil, try.header)
		if got.status != try.status || !strings.Contains(html.UnescapeString(got.body), try.says) {
			t.Errorf("%s: %d %s", try.name, got.status, words(got.body))
		}
		if after := got.header.Get("Retry-After"); (after == "") != (try.status == http.StatusOK) || after == "0" {
			t.Errorf("%s: Retry-After %q", try.name, after)
		}
		for _, pass := range held {
			pass.Leave()
		}
	}
}

// TestPagesForUnknownCallers: without a sign-in, one address gets a limited number of pages a second
// (--anonymous-rate). A refusal says when to try again. Pages of signed-in users are not counted, and files of a
// sign-in page are not counted.
func TestPagesForUnknownCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.visitor(w.clients[puntuale.Staff])
	w.serveAs(page.Config{Admit: admission.Limits{UnknownCallers: admission.NewRateLimiter[admission.CallerKey](1, 3, w.clock.Now)}})
	nobody := w.visitor(0)
	last := answer{}
	for i := range 4 {
		if last = nobody.get("/login"); (last.status == http.StatusOK) != (i < 3) {
			t.Errorf("call %d: %d", i+1, last.status)
		}
	}
	if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") != "1" {
		t.Errorf("the fourth: %d, Retry-After %q", last.status, last.header.Get("Retry-After"))
	}
	if got := nobody.post("/login", url.Values{"email": {"studio@example.com"}, "password": {password}}); got.status != http.StatusTooManyRequests {
		t.Errorf("a sign-in: %d", got.status)
	}
	far := w.visitor(0)
	far.forwarded = "203.0.113.7"
	for who, got := range map[string]answer{"another address": far.get("/login"), "who signed in": user.get(w.pages), "a picture": nobody.get("/static/none.png")} {
		if got.status == http.StatusTooManyRequests {
			t.Errorf("%s: %d", who, got.status)
		}
	}
	w.clock.Advance(time.Second)
	if got := nobody.get("/login"); got.status != http.StatusOK {
		t.Errorf("a second later: %d", got.status)
	}
}

// TestImportOfEmptySteps: a file with very many empty steps is refused before the server creates objects for the steps.
// The test does not run in parallel, because it measures the memory of the whole process.
func TestImportOfEmptySteps(t *testing.T) { //nolint:paralleltest // the test measures the memory of the whole process
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	for _, c := range []struct {
		steps, status int
		says          string
	}{
		{2, http.StatusOK, ""}, // the first page request of the process also allocates memory that later requests use again
		{300_000, http.StatusUnprocessableEntity, "non è una sequenza"},
		{5_000, http.StatusOK, "5000, al massimo 50"}, // the editor opens with the file's first steps
	} {
		var body strings.Builder
		form := multipart.NewWriter(&body)
		file, err := form.CreateFormFile("file", "sequence.json")
		w.must(err)
		_, err = file.Write([]byte(`{"name":"x","steps":[` + strings.Repeat("{},", c.steps-1) + `{}]}`))
		w.must(err)
		w.must(form.Close())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := v.send(w.pages+"/sequences/import", body.String(), http.Header{"Content-Type": {form.FormDataContentType()}})
		runtime.ReadMemStats(&after)
		if got.status != c.status || !strings.Contains(strings.ToLower(words(got.body)), c.says) {
			t.Errorf("%d steps: %d %.600s", c.steps, got.status, words(got.body))
		}
		if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 64 && c.steps > 2 {
			t.Errorf("%d steps took %d MiB", c.steps, taken)
		}
	}
}
