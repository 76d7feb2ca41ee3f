package httpapi

import (
	"net/http/httptest"
	"testing"
)

// For any headers and any query, presentedKey returns at most one key. If the query contains a key, presentedKey
// returns this key.
func FuzzPresentedKey(f *testing.F) {
	for _, seed := range [][2]string{{"Bearer ck_x", ""}, {"bearer  ck_x ", "ck_x"}, {"Basic eDp5", "ck_y"}, {"Bearer", ""}, {"Bearer a b", ""}, {"é", "\x00"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, header, query string) {
		r := httptest.NewRequest("GET", "/api/sequences", nil)
		r.Header.Set("Authorization", header)
		q := r.URL.Query()
		q.Set("api_key", query)
		r.URL.RawQuery = q.Encode()
		key, err := presentedKey(r)
		if err == nil && query != "" && key != query {
			t.Fatalf("%q and %q: %q", header, query, key)
		}
	})
}
