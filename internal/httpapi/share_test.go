package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit/admission"
)

// together makes n equal calls at the same time. It returns the answers as they come.
func (s *service) together(ctx context.Context, n int, method, target, key, body string) <-chan *httptest.ResponseRecorder {
	s.t.Helper()
	answers := make(chan *httptest.ResponseRecorder, n)
	for range n {
		go func() {
			r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+key)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			answers <- w
		}()
	}
	return answers
}

// refusedNow reads n answers, which must be refusals.
func refusedNow(t *testing.T, answers <-chan *httptest.ResponseRecorder, n int) {
	t.Helper()
	for range n {
		select {
		case a := <-answers:
			if a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") == "" {
				t.Errorf("%d %v %s", a.Code, a.Header(), a.Body)
			}
		case <-time.After(time.Minute):
			t.Fatal("a call waits that should be refused")
		}
	}
}

// TestWaitingCallsAreShared: forty calls of one client may wait for events or messages, and four of one device. Another
// client's calls still wait. A waiting call that ends makes room.
func TestWaitingCallsAreShared(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a, b := newTenant(s, "a@x", "+393330000001"), newTenant(s, "b@x", "+393330000002")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	taking := s.together(ctx, 6, "POST", "/device/take", a.token, `{"take":"1","wait":30}`)
	refusedNow(t, taking, 2)
	reading := s.together(ctx, 40, "GET", "/api/events?wait=30", a.key, "")
	refusedNow(t, reading, 4) // the client's device waits already
	other := s.together(ctx, 1, "GET", "/api/events?wait=30", b.key, "")
	s.must(nil, "GET", "/api/events", a.key, "") // a call that does not wait is answered as ever
	end()
	for range 36 {
		if r := <-reading; r.Code == http.StatusTooManyRequests {
			t.Fatalf("more than 4 calls were refused")
		}
	}
	if r := <-other; r.Code == http.StatusTooManyRequests {
		t.Errorf("another client's call: %d %s", r.Code, r.Body)
	}
	for range 4 {
		<-taking
	}
	ctx, end = context.WithCancel(t.Context())
	again := s.together(ctx, 1, "GET", "/api/events?wait=30", a.key, "")
	end()
	if r := <-again; r.Code == http.StatusTooManyRequests {
		t.Errorf("after the others ended: %d %s", r.Code, r.Body)
	}
}

// TestWebhookTestsAreShared: a client may run two tests of webhooks at the same time. The tests of other clients, and of
// the partner, do not wait for them.
func TestWebhookTestsAreShared(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
	hold := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-hold
		}
	}))
	defer receiver.Close()
	defer close(hold)
	path := func(key, where string) string {
		var made issuedWebhook
		s.must(&made, "POST", "/api/webhooks", key, `{"url":"`+receiver.URL+where+`"}`)
		return "/api/webhooks/" + made.ID + "/test"
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	slow := s.together(ctx, 40, "POST", path(a.Key, "/slow"), a.Key, "")
	refusedNow(t, slow, 38)
	for _, key := range []string{b.Key, s.partner} {
		if body := s.must(nil, "POST", path(key, "/quick"), key, "").body; !strings.Contains(body, `"delivered":true`) {
			t.Error(body)
		}
	}
	end()
	<-slow
	<-slow
}

// TestSilentNodesHoldNoSeats: while calls wait for a session's node, other calls can use their seats. One client may
// have sixteen such calls.
func TestSilentNodesHoldNoSeats(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a, b := newTenant(s, "a@x", "+393330000001"), newTenant(s, "b@x", "+393330000002")
	s.owner.mu.Lock()
	s.owner.absent = true
	s.owner.mu.Unlock()
	var err error
	s.handler, err = httpapi.New(httpapi.Config{
		Control: s.control, Accounts: s.accounts, Webhooks: newWebhooks(s.tenants, testVault(t), s.clock, true), Now: s.clock.Now, Logger: slog.New(slog.DiscardHandler),
		Admit: admission.Limits{Gate: admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: time.Minute, Now: time.Now})},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	before := s.count(`select count(*) from command`)
	var linking []<-chan *httptest.ResponseRecorder
	for n := range 16 {
		linking = append(linking, s.together(ctx, 1, "POST", "/api/sessions/"+a.linking+"/pair", a.key, `{"method":"qr"}`))
		for s.count(`select count(*) from command`) != before+n+1 {
			if t.Context().Err() != nil {
				t.Fatal("a call gave no command")
			}
		}
	}
	refusedNow(t, s.together(ctx, 1, "POST", "/api/sessions/"+a.linking+"/pair", a.key, `{"method":"qr"}`), 1)
	s.must(nil, "GET", "/api/sequences", b.key, "")
	end()
	for _, call := range linking {
		if r := <-call; r.Code == http.StatusTooManyRequests {
			t.Error(r.Code, r.Body)
		}
	}
}
