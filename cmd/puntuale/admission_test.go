package main

import (
	"context"
	"net/http"
	"testing"
)

// unknownCallersArePaced calls a server with --anonymous-rate 0.2, which accepts two calls at the same time from an
// address. The third call with a wrong key gets a Retry-After. The third request for a page also gets one. Calls with a
// valid key are not counted.
func unknownCallersArePaced(t *testing.T, base, key string) {
	t.Helper()
	for i, try := range []struct {
		path, key string
		want      int
	}{
		{"/api/sequences", "ck_wrong", http.StatusUnauthorized},
		{"/api/sequences", "", http.StatusUnauthorized},
		{"/api/sequences", "ck_wrong", http.StatusTooManyRequests},
		{"/login", "", http.StatusTooManyRequests},
		{"/api/sequences", key, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, base+try.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if try.key != "" {
			r.Header.Set("Authorization", "Bearer "+try.key)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != try.want || (answer.Header.Get("Retry-After") == "") != (try.want != http.StatusTooManyRequests) {
			t.Errorf("call %d, %s: %d, Retry-After %q", i+1, try.path, answer.StatusCode, answer.Header.Get("Retry-After"))
		}
	}
}
