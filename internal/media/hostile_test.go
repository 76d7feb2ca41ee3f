package media

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// short returns limits for tests with slow hosts.
func short() Config {
	return Config{
		Connect: time.Second, Header: time.Second, Total: 3 * time.Second,
		Rate: 10_000, Grace: 500 * time.Millisecond,
	}
}

// raw starts a server. For each connection, the function speak writes the answer. speak must return when stop is
// closed.
func raw(t *testing.T, speak func(c net.Conn, stop <-chan struct{})) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 4096))
				speak(c, stop)
			})
		}
	})
	t.Cleanup(func() { close(stop); l.Close(); served.Wait() })
	return netip.MustParseAddrPort(l.Addr().String())
}

// drip sends text repeatedly, until the peer closes the connection or the test ends.
func drip(c net.Conn, stop <-chan struct{}, text string, every time.Duration) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// TestHostsThatWasteTime: the fetcher ends each slow fetch within its limit, with an error that allows another try.
func TestHostsThatWasteTime(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n"
	for _, test := range []struct {
		name           string
		reason         puntuale.ReasonCode
		detail, scheme string
		speak          func(net.Conn, <-chan struct{})
	}{
		{"says nothing", reasonUnreachable, "in tempo", "http", func(_ net.Conn, stop <-chan struct{}) { <-stop }},
		{"stalls in TLS", reasonUnreachable, "in tempo", "https", func(_ net.Conn, stop <-chan struct{}) { <-stop }},
		{"headers that never end", reasonUnreachable, "in tempo", "http", func(c net.Conn, stop <-chan struct{}) {
			_, _ = io.WriteString(c, head)
			drip(c, stop, "X-More: and more\r\n", time.Millisecond)
		}},
		{"one byte at a time", reasonSlow, "velocità", "http", func(c net.Conn, stop <-chan struct{}) {
			_, _ = io.WriteString(c, head+"\r\n")
			drip(c, stop, "x", 10*time.Millisecond)
		}},
		{"stops in the middle", reasonSlow, "velocità", "http", func(c net.Conn, stop <-chan struct{}) {
			_, _ = io.WriteString(c, head+"Content-Length: 100000\r\n\r\n"+strings.Repeat("x", 50000))
			<-stop
		}},
		{"fast enough, but without end", reasonSlow, "tempo massimo", "http", func(c net.Conn, stop <-chan struct{}) {
			_, _ = io.WriteString(c, head+"\r\n")
			drip(c, stop, strings.Repeat("x", 1000), 5*time.Millisecond)
		}},
		{"shorter than it said", reasonBroken, "", "http", func(c net.Conn, _ <-chan struct{}) {
			_, _ = io.WriteString(c, head+"Content-Length: 1000\r\n\r\nshort")
		}},
		{"a broken chunk", reasonBroken, "", "http", func(c net.Conn, _ <-chan struct{}) {
			_, _ = io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nff\r\nbroken")
		}},
		{"no HTTP", reasonUnreachable, "", "http", func(c net.Conn, _ <-chan struct{}) { _, _ = io.WriteString(c, "220 mail.example ESMTP\r\n") }},
		{"hangs up", reasonUnreachable, "", "http", func(net.Conn, <-chan struct{}) {}},
		{"interim answers without end", reasonUnreachable, "", "http", func(c net.Conn, stop <-chan struct{}) {
			drip(c, stop, "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", time.Millisecond)
		}},
		{"huge headers", reasonUnreachable, "", "http", func(c net.Conn, _ <-chan struct{}) {
			_, _ = io.WriteString(c, head+"X-Big: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			to := raw(t, test.speak)
			f := newFetcher(t, short(), to)
			e := fails(t, f, request(test.scheme+"://"+to.String()+"/foto.jpg"), puntuale.Transient, test.reason)
			if !strings.Contains(italian(e.Detail), test.detail) {
				t.Errorf("the detail is %q, want %q in it", e.Detail, test.detail)
			}
		})
	}
}

// TestSize: the limit applies to the bytes that arrive. A file of exactly this size is accepted, and a file with one
// more byte is refused.
func TestSize(t *testing.T) {
	t.Parallel()
	const limit = 200_000
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.FormValue("size"))
		w.Header().Set("Content-Type", "image/jpeg")
		if r.FormValue("says") != "" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		for size > 0 {
			n := min(size, 10_000)
			if _, err := w.Write(make([]byte, n)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			size -= n
		}
	})
	f := newFetcher(t, Config{MaxBytes: limit}, h.addr)
	for _, says := range []string{"", "&says=1"} {
		if content, _ := fetch(t, f, request(h.under(fmt.Sprintf("/a.jpg?size=%d%s", limit, says)))); len(content) != limit {
			t.Errorf("%d bytes", len(content))
		}
		fails(t, f, request(h.under(fmt.Sprintf("/a.jpg?size=%d%s", limit+1, says))), puntuale.Final, reasonTooBig)
		fails(t, f, request(h.under(fmt.Sprintf("/a.jpg?size=%d%s", 1<<30, says))), puntuale.Final, reasonTooBig)
	}
	r := request(h.under("/a.jpg?size=1001"))
	r.MaxBytes = 1000 // the connector's own limit
	if e := fails(t, f, r, puntuale.Final, reasonTooBig); !strings.Contains(italian(e.Detail), "1000 byte") {
		t.Errorf("detail %q", e.Detail)
	}
	r.MaxBytes = limit * 2 // this limit cannot raise the fetcher's limit
	r.URL = h.under(fmt.Sprintf("/a.jpg?size=%d", limit+1))
	fails(t, f, r, puntuale.Final, reasonTooBig)
}

// TestNothingIsInflated: compressed files are not unpacked. The fetcher asks hosts for uncompressed files, and refuses
// an answer that is compressed nevertheless.
func TestNothingIsInflated(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 20 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding is %q", got)
		}
		if r.URL.Path == "/encoded.pdf" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = w.Write(bomb.Bytes())
	})
	f := newFetcher(t, Config{MaxBytes: 1 << 20}, h.addr)
	if content, _ := fetch(t, f, request(h.under("/plain.pdf"))); content != bomb.String() {
		t.Errorf("%d bytes arrived of %d", len(content), bomb.Len())
	}
	fails(t, f, request(h.under("/encoded.pdf")), puntuale.Final, reasonKind)
}

// TestMemory: a large file is written to disk while it arrives.
func TestMemory(t *testing.T) {
	const size = 80 << 20
	h := newHost(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		block := make([]byte, 1<<20)
		for range size >> 20 {
			_, _ = w.Write(block)
		}
	})
	f := newFetcher(t, Config{}, h.addr)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := f.Fetch(within(t), request(h.under("/video.mp4")))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	runtime.ReadMemStats(&after)
	if m.Size != size {
		t.Errorf("%d bytes", m.Size)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("%d MiB were allocated for %d", grown>>20, m.Size>>20)
	}
}

// TestAnswers checks the error for each status.
func TestAnswers(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		w.Header().Set("Content-Type", "image/jpeg")
		w.WriteHeader(code)
		if code != 204 && code != 304 {
			_, _ = io.WriteString(w, "words")
		}
	})
	f := newFetcher(t, Config{}, h.addr)
	for code, want := range map[int]struct {
		kind   puntuale.SendErrorKind
		reason puntuale.ReasonCode
	}{
		204: {puntuale.Final, reasonKind}, 206: {puntuale.Final, reasonKind}, 304: {puntuale.Final, reasonKind}, 300: {puntuale.Final, reasonKind},
		302: {puntuale.Final, puntuale.ReasonFileAddress}, // a redirect without an address
		400: {puntuale.Final, reasonRefused}, 401: {puntuale.Final, reasonRefused}, 403: {puntuale.Final, reasonRefused}, 451: {puntuale.Final, reasonRefused},
		404: {puntuale.Final, reasonMissing}, 410: {puntuale.Final, reasonMissing},
		408: {puntuale.Transient, reasonUnreachable}, 425: {puntuale.Transient, reasonUnreachable}, 429: {puntuale.Transient, reasonUnreachable},
		500: {puntuale.Transient, reasonUnreachable}, 502: {puntuale.Transient, reasonUnreachable}, 503: {puntuale.Transient, reasonUnreachable},
	} {
		e := fails(t, f, request(h.under("/a.jpg?code="+strconv.Itoa(code))), want.kind, want.reason)
		if code != 302 && !strings.Contains(italian(e.Detail), strconv.Itoa(code)) {
			t.Errorf("%d: the detail is %q", code, e.Detail)
		}
	}
	if content, _ := fetch(t, f, request(h.under("/a.jpg?code=203"))); content != "words" {
		t.Errorf("203: %q", content)
	}
}

// TestRedirects: the fetcher follows three redirects, with each code. Nothing of ours is sent to the new host.
func TestRedirects(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Referer", "Authorization", "Cookie", "X-Forwarded-For"} {
			if got := r.Header.Get(name); got != "" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if r.Method != http.MethodGet {
			t.Errorf("asked with %s", r.Method)
		}
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if n == 0 {
			serving("image/jpeg", []byte("jpeg"))(w, r)
			return
		}
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Location", fmt.Sprintf("?n=%d&code=%d", n-1, code))
		w.WriteHeader(code)
	})
	f := newFetcher(t, Config{PerHost: 1, MaxConcurrent: 1}, h.addr)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for n := range 4 {
			if content, _ := fetch(t, f, request(h.under(fmt.Sprintf("/a.jpg?n=%d&code=%d#piece", n, code)))); content != "jpeg" {
				t.Errorf("%d redirects with %d: %q", n, code, content)
			}
		}
		fails(t, f, request(h.under(fmt.Sprintf("/a.jpg?n=4&code=%d", code))), puntuale.Final, puntuale.ReasonFileAddress)
	}
}

// TestRedirectsShareTheTime: each redirect is fast enough, but all redirects together exceed the limit.
func TestRedirectsShareTheTime(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(400 * time.Millisecond)
		http.Redirect(w, r, "/a.jpg?"+r.URL.RawQuery+"x", http.StatusFound)
	})
	f := newFetcher(t, Config{Total: time.Second}, h.addr)
	fails(t, f, request(h.under("/a.jpg")), puntuale.Transient, reasonSlow)
}

// TestKind: the host's media type takes precedence, then the extension, then the first bytes of the file. Web pages are
// not files.
func TestKind(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind := r.URL.Query().Get("kind"); kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, r.URL.Query().Get("body"))
	})
	f := newFetcher(t, Config{}, h.addr)
	for target, want := range map[string]string{
		"/a.jpg?body=x&kind=image/png":                                  "image/png",
		"/a.jpg?body=x&kind=IMAGE/PNG%3Bcharset=x":                      "image/png",
		"/a.JPG?body=x":                                                 "image/jpeg",
		"/a.pdf?body=x&kind=application/octet-stream":                   "application/pdf",
		"/a?body=%25PDF-1.7":                                            "application/pdf",
		"/a?body=%00%01":                                                "application/octet-stream",
		"/a.docx?body=PK%03%04&kind=nonsense":                           "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"/a.pdf?body=%3Chtml%3E":                                        "",
		"/a.pdf?body=x&kind=text/html%3Bcharset=utf-8":                  "",
		"/a.pdf?body=x&kind=application/xhtml%2Bxml":                    "",
		"/a.pdf?body=%3C!DOCTYPE+HTML%3E&kind=application/octet-stream": "",
		"/a.pdf?body=":                                                  "",
	} {
		if want == "" {
			fails(t, f, request(h.under(target)), puntuale.Final, reasonKind)
		} else if _, kind := fetch(t, f, request(h.under(target))); kind != want {
			t.Errorf("%s: %s, want %s", target, kind, want)
		}
	}
}
