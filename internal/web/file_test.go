package web_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/media"
)

// filesOf starts a server with files, and stores the server's address in at. It returns a fetcher like the service's.
// In addition, this fetcher may fetch from the test's server.
func filesOf(t testing.TB, c clock.Clock, at *string) *media.Fetcher {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, existing := map[string]int{"/foto.png": 2000, "/byte.png": 700, "/grande.png": 3 << 19}[r.URL.Path]
		if !existing {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		const begins = "\x89PNG\r\n\x1a\n"
		_, _ = w.Write([]byte(begins + strings.Repeat("x", size-len(begins))))
	}))
	t.Cleanup(host.Close)
	*at = host.URL
	own := netip.MustParseAddrPort(strings.TrimPrefix(host.URL, "http://"))
	f, err := media.New(media.Config{Folder: t.TempDir(), Clock: c, Ports: []uint16{80, 443, own.Port()}, Exempt: func(to netip.AddrPort) bool { return to == own }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestFilesAreTried: while a person types an address, the page describes the file at this address, or says why it
// cannot be sent.
func TestFilesAreTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	says := func(address string) string {
		got := v.htmx(w.pages+"/sequences/file", url.Values{"at": {"steps[1].media"}, "steps[0].media": {"x"}, "steps[1].media": {address}})
		if got.status != http.StatusOK {
			t.Errorf("%s: %d %s", address, got.status, got.body)
		}
		return html.UnescapeString(got.body)
	}
	for address, want := range map[string]string{
		w.files + "/foto.png":              "image/png, 2 KB",
		w.files + "/niente.png":            "non trovato",
		"http://127.0.0.1/x.png":           "indirizzo pubblico",
		"http://169.254.169.254/meta.png":  "indirizzo pubblico",
		"ftp://example.com/x.png":          "indirizzo pubblico",
		"https://example.com/{{nome}}.png": "contiene campi",

		"https://example.com/" + strings.Repeat("x", puntuale.MaxURL): "più lungo di 2048 caratteri",
	} {
		if got := says(address); !strings.Contains(got, want) {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := says(""); strings.Contains(got, "note") {
		t.Errorf("nothing: %s", got)
	}
	for language, sizes := range map[string][2]string{"en": {"700 bytes", "1.5 MB"}, "it": {"700 byte.", "1,5 MB"}} {
		v.language = language
		for i, file := range []string{"/byte.png", "/grande.png"} {
			if got := says(w.files + file); !strings.Contains(got, "image/png, "+sizes[i]) {
				t.Errorf("%s in %q: %s", file, language, got)
			}
		}
	}
	v.language = "it"
	for range 20 {
		says(w.files + "/foto.png")
	}
	if got := says(w.files + "/foto.png"); !strings.Contains(got, "Troppi controlli") {
		t.Errorf("too many: %s", got)
	}
	w.clock.Advance(time.Minute)
	if got := says(w.files + "/foto.png"); !strings.Contains(got, "Trovato") {
		t.Errorf("a minute later: %s", got)
	}
	if got := w.visitor(w.clients[puntuale.Reader]).htmx(w.pages+"/sequences/file", url.Values{}); got.status != http.StatusForbidden {
		t.Errorf("a reader: %d", got.status)
	}
}
