package httpkit_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"puntuale/internal/httpkit"
)

// TestCaller: only trusted proxies are believed. Counted from the end of the list, the first address that is not a
// trusted proxy is the caller's.
func TestCaller(t *testing.T) {
	t.Parallel()
	const edge = "198.51.100.0/24" // the proxies of some provider
	for name, test := range map[string]struct {
		trusted []string // nil: the default proxies
		peer    string
		headers http.Header
		want    httpkit.Caller
	}{
		"nobody between":           {nil, "203.0.113.7:1", nil, caller("203.0.113.7", false, false)},
		"this machine":             {nil, "127.0.0.1:1", nil, caller("127.0.0.1", false, true)},
		"a proxy here":             {nil, "127.0.0.1:1", forwarded("https", "203.0.113.7"), caller("203.0.113.7", true, false)},
		"a forged address":         {nil, "203.0.113.7:1", forwarded("", "8.8.8.8"), caller("203.0.113.7", false, false)},
		"a forged scheme":          {nil, "203.0.113.7:1", forwarded("https"), caller("203.0.113.7", false, false)},
		"forged before the proxy":  {nil, "127.0.0.1:1", forwarded("https", "8.8.8.8, 203.0.113.7"), caller("203.0.113.7", true, false)},
		"forged in another line":   {nil, "127.0.0.1:1", forwarded("https", "8.8.8.8", "203.0.113.7"), caller("203.0.113.7", true, false)},
		"two proxies, one trusted": {nil, "127.0.0.1:1", forwarded("https", "203.0.113.7, 198.51.100.9"), caller("198.51.100.9", true, false)},
		"two proxies, both":        {[]string{"loopback", edge}, "127.0.0.1:1", forwarded("https", "8.8.8.8, 203.0.113.7,198.51.100.9"), caller("203.0.113.7", true, false)},
		"two lines, both":          {[]string{"loopback", edge}, "127.0.0.1:1", forwarded("https", "203.0.113.7", "198.51.100.9"), caller("203.0.113.7", true, false)},
		"two schemes":              {nil, "10.0.0.1:1", forwarded("https, http", "203.0.113.7"), caller("203.0.113.7", true, false)},
		"nobody is trusted":        {[]string{}, "127.0.0.1:1", forwarded("https", "203.0.113.7"), caller("127.0.0.1", false, false)},
		"a provider's proxy":       {[]string{edge}, "198.51.100.9:1", forwarded("https", "2001:db8::7"), caller("2001:db8::7", true, false)},
		"with a port":              {nil, "127.0.0.1:1", forwarded("", "203.0.113.7:4711"), caller("203.0.113.7", false, false)},
		"IPv6 with a port":         {nil, "[::1]:1", forwarded("", "[2001:db8::7]:4711"), caller("2001:db8::7", false, false)},
		"IPv4 in IPv6":             {nil, "[::ffff:10.0.0.1]:1", forwarded("", "::ffff:203.0.113.7"), caller("203.0.113.7", false, false)},
		"what is no address":       {nil, "127.0.0.1:1", forwarded("", "203.0.113.7, unknown"), caller("127.0.0.1", false, false)},
		"a private caller":         {nil, "127.0.0.1:1", forwarded("http", "192.168.1.5"), caller("192.168.1.5", false, false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var proxies httpkit.Proxies
			if test.trusted != nil {
				var err error
				if proxies, err = httpkit.ParseProxies(test.trusted); err != nil {
					t.Fatal(err)
				}
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = test.peer
			if test.headers != nil {
				r.Header = test.headers
			}
			var got httpkit.Caller
			w := httptest.NewRecorder()
			httpkit.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = httpkit.CallerOf(r) }),
				httpkit.Config{Logger: slog.New(slog.DiscardHandler), Now: time.Now, Proxies: proxies}).ServeHTTP(w, r)
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if strict := w.Header().Get("Strict-Transport-Security") != ""; strict != test.want.Secure {
				t.Errorf("HSTS is sent: %v", strict)
			}
		})
	}
}

func caller(address string, secure, local bool) httpkit.Caller {
	return httpkit.Caller{Address: netip.MustParseAddr(address), Secure: secure, Local: local}
}

func forwarded(scheme string, lines ...string) http.Header {
	h := http.Header{}
	if scheme != "" {
		h.Set("X-Forwarded-Proto", scheme)
	}
	for _, line := range lines {
		h.Add("X-Forwarded-For", line)
	}
	return h
}

func TestParseProxies(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"proxy.example.com", "10.0.0.0/33", "10.0.0.0/", "fe80::1%eth0", "::ffff:10.0.0.0/104", "*"} {
		if p, err := httpkit.ParseProxies([]string{word}); err == nil {
			t.Errorf("%q is taken for %v", word, p)
		}
	}
	if p, err := httpkit.ParseProxies(nil); err != nil || p == nil || len(p) != 0 {
		t.Errorf("no words: %v, %v", p, err)
	}
}
