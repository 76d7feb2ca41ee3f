package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHandler: browsers may store a file for ever under the address with its hash. The content is the same with and
// without gzip. Any other address is not found.
func TestHandler(t *testing.T) {
	t.Parallel()
	get := func(path, accept string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, r)
		return w.Result()
	}
	total := 0
	for name := range servedFolder().addresses {
		plain, squeezed := get(URL(name), ""), get(URL(name), "br, gzip")
		a, err := io.ReadAll(plain.Body)
		if err != nil || plain.StatusCode != http.StatusOK || plain.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || plain.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v, %v", name, plain.StatusCode, plain.Header, err)
		}
		b, err := io.ReadAll(squeezed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if name != "htmx-LICENSE.txt" && name != "alpine-sort.js" {
			total += len(b)
		}
		if squeezed.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is another file squeezed", name)
		}
		if bytes.Contains(a, []byte("sourceMappingURL")) {
			t.Errorf("%s names a map of sources", name)
		}
	}
	t.Logf("a page's files are %d KB on the wire", total>>10)
	if total > 180<<10 {
		t.Errorf("a page's files are %d bytes on the wire", total)
	}
	for _, path := range []string{Path, Path + "app.css", Path + "app.000000000000.css", Path + "../static.go"} {
		if r := get(path, ""); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}
