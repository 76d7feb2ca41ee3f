package httpapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit/admission"
)

// behindGate returns the service's handler behind a gate.
func (s *service) behindGate(gate *admission.Gate, refuse *admission.RefusalPacer) http.Handler {
	s.t.Helper()
	h, err := httpapi.New(httpapi.Config{Control: s.control, Accounts: s.accounts, Now: s.clock.Now, Logger: slog.New(slog.DiscardHandler), Admit: admission.Limits{Gate: gate}, Refuse: refuse})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// lateBody is a body that sends nothing at first.
type lateBody struct {
	io.Reader
	from <-chan time.Time
}

func (b lateBody) Read(p []byte) (int, error) {
	<-b.from
	return b.Reader.Read(p)
}

// The time in which a body arrives does not count as waiting for the server. The call succeeds even if its first
// admission deadline passes while the body arrives.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		sequence := s.newSequence(key, stepLater)
		const limit = time.Second
		h := s.behindGate(admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: limit, Now: time.Now}), nil)
		var last string
		for n := range 5 { // on a slow machine, one call alone may exceed its admission deadline
			from := make(chan time.Time)
			time.AfterFunc(limit+limit/4, func() { close(from) })
			body := lateBody{strings.NewReader(fmt.Sprintf(`{"phone":"+39347123%04d","testo":"x"}`, n)), from}
			r := httptest.NewRequest(http.MethodPost, "/api/start/"+sequence, body)
			r.Header.Set("Authorization", "Bearer "+key)
			r.ContentLength = -1
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusOK {
				return
			}
			last = fmt.Sprint(w.Code, w.Body)
		}
		t.Error(last)
	})
}

// TestPreventingCalls: while all usual seats are taken, calls that prevent sends are still admitted.
func TestPreventingCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	key := s.newClient("a@x", "full")
	sequence := s.newSequence(key, stepLater)
	gate := admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: 50 * time.Millisecond, Now: time.Now})
	h := s.behindGate(gate, nil)
	permit, _, err := gate.Enter(t.Context(), admission.CallerKey{Side: puntuale.ClientSide, ID: 1 << 40}, admission.PriorityWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer permit.Leave()
	for call, admitted := range map[string]bool{
		"PUT /api/sessions/9999": false, "DELETE /api/sessions/9999": true, "DELETE /api/sessions/9999/pair": true, "DELETE /api/sessions/9999/devices/1": true,
		"DELETE /api/sequences/" + sequence: true,
	} {
		method, path, _ := strings.Cut(call, " ")
		r := httptest.NewRequest(method, path, strings.NewReader(`{}`))
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Code != http.StatusServiceUnavailable; got != admitted {
			t.Errorf("%s: admitted %v (%d %s)", call, got, w.Code, w.Body)
		}
	}
}

// Delayed refusals have no seats at the gate. So calls with a valid key are admitted while refusals wait.
func TestHeldRefusalsHoldNoSeats(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	key := s.newClient("a@x", "full")
	var held atomic.Int64
	refuse := admission.NewRefusalPacer(0.1, func() time.Time {
		held.Add(1)
		return time.Now()
	})
	h := s.behindGate(admission.NewGate(admission.GateConfig{Seats: 2, LongestWait: 50 * time.Millisecond, Now: time.Now}), refuse)
	call := func(key string) int {
		r := httptest.NewRequest(http.MethodGet, "/api/sequences", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	invented, _, err := auth.NewKey(puntuale.ClientSide, "x", morning)
	if err != nil {
		t.Fatal(err)
	}
	if code := call(invented); code != http.StatusUnauthorized { // this refusal is not delayed
		t.Errorf("an invented key: %d", code)
	}
	asked := held.Load()
	answer := make(chan int, 1)
	go func() { answer <- call(invented) }()
	for deadline := time.Now().Add(time.Minute); held.Load() == asked; {
		if time.Now().After(deadline) {
			t.Fatal("the refusal is not held back")
		}
		<-time.After(time.Millisecond)
	}
	if code := call(key); code != http.StatusOK {
		t.Errorf("a call with a key: %d", code)
	}
	if code := <-answer; code != http.StatusUnauthorized {
		t.Errorf("an invented key: %d", code)
	}
}
