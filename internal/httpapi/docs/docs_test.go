package docs

import (
	"net/http/httptest"
	"testing"
)

// For any header, takesGzip does not panic. A plain "gzip" is accepted, and a weight of 0 is not.
func FuzzTakesGzip(f *testing.F) {
	for seed, want := range map[string]bool{"gzip": true, "br, gzip;q=0.8": true, "gzip;q=0": false, "gzip;q=0.000": false, "é\x00;;": false} {
		r := httptest.NewRequest("GET", PagePath, nil)
		r.Header.Set("Accept-Encoding", seed)
		if takesGzip(r) != want {
			f.Errorf("%q: want %v", seed, want)
		}
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, header string) {
		r := httptest.NewRequest("GET", PagePath, nil)
		r.Header.Set("Accept-Encoding", header)
		_ = takesGzip(r)
	})
}
