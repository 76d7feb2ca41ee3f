package outside_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/outside"
)

// hostile are the bodies with which a server attacks its reader. Each writes until the reader has gone.
var hostile = map[string]func(w http.ResponseWriter, r *http.Request){
	"an endless body": func(w http.ResponseWriter, _ *http.Request) {
		for _, err := w.Write(bytes.Repeat([]byte("x"), 64<<10)); err == nil; _, err = w.Write(bytes.Repeat([]byte("x"), 64<<10)) {
		}
	},
	"an endless list of objects": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"payload":[`)
		for _, err := w.Write(bytes.Repeat([]byte("{},"), 20<<10)); err == nil; _, err = w.Write(bytes.Repeat([]byte("{},"), 20<<10)) {
		}
	},
	"a long list of objects": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"payload":[`+strings.Repeat("{},", 300_000)+`{}]}`)
	},
	"deep nesting": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("[", 5000)) },
	"a drop at a time": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"a":"`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	},
	"a compressed bomb": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for _, err := z.Write(make([]byte, 1<<20)); err == nil; _, err = z.Write(make([]byte, 1<<20)) {
		}
	},
}

// grant counts the memory that a payer gave.
type grant struct{ taken, most int64 }

func (g *grant) Take(n int64) error {
	if g.taken += n; g.taken > g.most {
		return puntuale.Overloaded(0)
	}
	return nil
}

// serveHostile starts a server for one attack, and returns a request to it.
func serveHostile(t *testing.T, attack http.HandlerFunc) *http.Response {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: attack, ReadHeaderTimeout: time.Minute}
	go server.Serve(l)
	transport := &http.Transport{MaxResponseHeaderBytes: 64 << 10}
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestEveryReadIsBounded lets a hostile server answer to every kind of the table, in every way. Each read ends within its
// bounds, and takes little memory.
func TestEveryReadIsBounded(t *testing.T) {
	for _, kind := range outside.Kinds {
		bounds := *kind
		bounds.MaxBytes = min(bounds.MaxBytes, 4<<20) // a file of 1 GiB would only take time
		if bounds.MaxBytes <= 0 || bounds.Within <= 0 || bounds.Payer == "" || bounds.Name == "" {
			t.Errorf("%+v has no bounds", bounds)
		}
		for name, attack := range hostile {
			t.Run(bounds.Name+"/"+name, func(t *testing.T) {
				k := bounds
				if name == "a drop at a time" {
					k.Within = 50 * time.Millisecond
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var target struct {
					Payload []struct{ A, B, C, D *string } `json:"payload"`
				}
				pays := &grant{most: 32 << 20}
				ctx := puntuale.WithMemoryGrant(t.Context(), pays)
				var err error
				if k.MaxJSON > 0 {
					err = k.Decode(ctx, serveHostile(t, attack).Body, &target)
				} else {
					body := k.Body(ctx, serveHostile(t, attack).Body)
					_, err = io.Copy(io.Discard, body)
					_ = body.Close()
				}
				runtime.ReadMemStats(&after)
				short := name == "a long list of objects" || name == "deep nesting"
				if err == nil && (k.MaxJSON > 0 && k.MaxJSON < 300_000 || !short) {
					t.Error("it was accepted")
				}
				if _, large := errors.AsType[*outside.TooLargeError](err); name == "an endless body" && !large {
					t.Errorf("an endless body: %v", err)
				}
				if name == "a drop at a time" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a slow body: %v", err)
				}
				if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 && k.MaxJSON < 1_000_000 {
					t.Errorf("it took %d MiB", used>>20)
				}
			})
		}
	}
}

// TestHeadersAreBounded: a server whose headers never end, or that never comes to its answer, does not fill the memory.
// The architecture's test makes every transport set the bound.
func TestHeadersAreBounded(t *testing.T) {
	for name, endless := range map[string]string{"one answer": "X-A: " + strings.Repeat("b", 1000) + "\r\n", "interim answers": "HTTP/1.1 103 Early Hints\r\nX-A: " + strings.Repeat("b", 1000) + "\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				if name == "one answer" {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				}
				for line := []byte(endless); err == nil; _, err = c.Write(line) { // a string would be copied for each write, which counts below
				}
			}()
			transport := &http.Transport{MaxResponseHeaderBytes: 64 << 10}
			defer transport.CloseIdleConnections()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := transport.RoundTrip(r); err == nil {
				got.Body.Close()
				t.Error("it was accepted")
			}
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4<<20 {
				t.Errorf("it took %d bytes", after.TotalAlloc-before.TotalAlloc)
			}
		})
	}
}

// All bytes of an answer are charged, four times their length. The first bytes are read even if the payer has no memory
// left.
func TestAnswersAreCharged(t *testing.T) {
	t.Parallel()
	k := outside.Kind{Name: "test", MaxBytes: 1 << 20, Within: time.Minute, Free: 64 << 10, Payer: outside.PayOwner}
	read := func(n int, most int64) (int64, error) {
		pays := &grant{most: most}
		_, err := k.Read(puntuale.WithMemoryGrant(t.Context(), pays), io.NopCloser(strings.NewReader(strings.Repeat("x", n))))
		return pays.taken, err
	}
	if taken, err := read(10<<10, 0); taken < 4*10<<10 || err != nil {
		t.Errorf("a short answer takes %d, %v", taken, err)
	}
	if taken, err := read(512<<10, 1<<30); taken < 4*512<<10-64<<10 || err != nil {
		t.Errorf("a long answer takes %d, %v", taken, err)
	}
	if _, err := read(512<<10, 256<<10); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
		t.Errorf("without memory: %v", err)
	}
}

// A call that waits for an answer pays for it. For other work the client or the partner pays, and gets the memory back.
func TestWhoPays(t *testing.T) {
	t.Parallel()
	opened, closed := 0, 0
	m := outside.MemoryGrants(func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
		if id != 7 || side != []puntuale.Side{puntuale.ClientSide, puntuale.PartnerSide}[opened] {
			t.Errorf("%s %d pays", side, id)
		}
		opened++
		return &grant{most: 1 << 20}, func() { closed++ }
	})
	ctx, done := m.Client(t.Context(), 7)
	_, again := m.Client(ctx, 8)
	again()
	_, again = m.Partner(ctx, 8)
	again()
	done()
	_, done = m.Partner(t.Context(), 7)
	done()
	if opened != 2 || closed != 2 || !puntuale.HasMemoryGrant(ctx) {
		t.Errorf("%d grants opened, %d closed", opened, closed)
	}
	if ctx, done := outside.MemoryGrants(nil).Client(t.Context(), 7); done == nil || !puntuale.HasMemoryGrant(ctx) {
		t.Error("without a budget nobody pays")
	}
}

// fixed is a transport that always gives the same answer.
type fixed string

func (f fixed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(f)))}, nil
}

// ways are all ways to read an answer of a kind. Each returns how many bytes it read.
var ways = map[string]func(ctx context.Context, k *outside.Kind, text string) (int, error){
	"Read": func(ctx context.Context, k *outside.Kind, text string) (int, error) {
		got, err := k.Read(ctx, io.NopCloser(strings.NewReader(text)))
		return len(got), err
	},
	"Decode": func(ctx context.Context, k *outside.Kind, text string) (int, error) {
		var to string
		counted := *k
		counted.MaxJSON = 10
		err := counted.Decode(ctx, io.NopCloser(strings.NewReader(`"`+text+`"`)), &to)
		return len(to), err
	},
	"Beginning": func(ctx context.Context, k *outside.Kind, text string) (int, error) {
		got := len(k.Beginning(ctx, io.NopCloser(strings.NewReader(text)), len(text)))
		if got == 0 {
			return 0, errors.New("nothing was read")
		}
		return got, nil
	},
	"Conn": func(ctx context.Context, k *outside.Kind, text string) (int, error) {
		near, far := net.Pipe()
		defer near.Close()
		go func() { _, _ = io.WriteString(far, text); _ = far.Close() }()
		got, err := io.ReadAll(k.Conn(ctx, near))
		return len(got), err
	},
}

// TestEveryReadHasPayer reads every kind of the table in every way. Data that need memory of this server cannot be read
// if nobody pays for them. If somebody pays, all bytes are charged. A payer without memory gets only answers that decide
// about something.
func TestEveryReadHasPayer(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1000)
	for _, k := range outside.Kinds {
		owned := k.Payer == outside.PayOwner
		if !owned && k.Payer != outside.PayDisk && k.Payer != outside.PayHuman {
			t.Errorf("%s: nobody pays", k.Name)
		}
		if _, err := io.Copy(io.Discard, k.Body(t.Context(), io.NopCloser(strings.NewReader(text)))); (err != nil) != owned {
			t.Errorf("%s: a file without a payer: %v", k.Name, err)
		}
		for way, read := range ways {
			if n, err := read(t.Context(), k, text); (err != nil) != owned || owned && n > 0 {
				t.Errorf("%s, %s without a payer: %d bytes, %v", k.Name, way, n, err)
			}
			rich, poor := &grant{most: 1 << 20}, &grant{}
			if n, err := read(puntuale.WithMemoryGrant(t.Context(), rich), k, text); n != len(text) || err != nil || (rich.taken >= int64(n)) != owned {
				t.Errorf("%s, %s: %d bytes, %d are charged, %v", k.Name, way, n, rich.taken, err)
			}
			if n, err := read(puntuale.WithMemoryGrant(t.Context(), poor), k, text); (err == nil) != (!owned || k.Free > 0) || err != nil && n > 0 {
				t.Errorf("%s, %s for a payer without memory: %d bytes, %v", k.Name, way, n, err)
			}
		}
		var taken, open int
		transport := k.Transport(fixed(text), func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
			if open++; side != puntuale.ClientSide || id != 7 {
				t.Errorf("%s: %s %d pays", k.Name, side, id)
			}
			return counter{&taken}, func() { open-- }
		}, 7)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, got.Body); n != int64(len(text)) || err != nil || (taken >= len(text)) != owned || open != 1 {
			t.Errorf("%s, a transport: %d bytes, %d are charged, %v", k.Name, n, taken, err)
		}
		if err := got.Body.Close(); err != nil || open != 0 {
			t.Errorf("%s: %d grants stay open, %v", k.Name, open, err)
		}
	}
}

// counter is a grant that never refuses.
type counter struct{ taken *int }

func (c counter) Take(n int64) error {
	*c.taken += int(n)
	return nil
}

// A connection ends after the bytes of its kind.
func TestConnectionIsBounded(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		for _, err := far.Write(make([]byte, 32<<10)); err == nil; _, err = far.Write(make([]byte, 32<<10)) {
		}
	}()
	n, err := io.Copy(io.Discard, outside.Mail.Conn(puntuale.WithMemoryGrant(t.Context(), &grant{most: 1 << 20}), near))
	if _, large := errors.AsType[*outside.TooLargeError](err); !large || n != outside.Mail.MaxBytes {
		t.Errorf("%d bytes, %v", n, err)
	}
}
