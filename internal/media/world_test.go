package media

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxWait bounds the wait for events that should happen soon.
const maxWait = 30 * time.Second

// host is a server on loopback that a fetcher may reach.
type host struct {
	*httptest.Server
	addr     netip.AddrPort
	requests atomic.Int64
}

func newHost(t *testing.T, handler http.HandlerFunc) *host {
	t.Helper()
	h := &host{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.requests.Add(1)
		handler(w, r)
	}))
	t.Cleanup(h.Close)
	h.addr = netip.MustParseAddrPort(h.Listener.Addr().String())
	return h
}

// serving answers every request with the same file.
func serving(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content)
	}
}

// newFetcher returns a fetcher that may reach public addresses and the addresses in the argument reach, but only on the
// given ports.
func newFetcher(t *testing.T, cfg Config, reach ...netip.AddrPort) *Fetcher {
	t.Helper()
	if cfg.Folder == "" {
		cfg.Folder = t.TempDir()
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	for _, to := range reach {
		cfg.Ports = append(cfg.Ports, to.Port())
	}
	cfg.Exempt = func(to netip.AddrPort) bool {
		for _, allowed := range reach {
			if to == allowed {
				return true
			}
		}
		return false
	}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir(cfg.Folder)
		if err != nil || len(left) > 0 {
			t.Errorf("files left in the folder: %v, %v", left, err)
		}
		if f.stored != 0 {
			t.Errorf("%d bytes are still counted", f.stored)
		}
	})
	return f
}

func request(url string) puntuale.MediaRequest {
	return puntuale.MediaRequest{Client: 7, Run: 42, URL: url}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// fetch reads a file to its end.
func fetch(t *testing.T, f *Fetcher, r puntuale.MediaRequest) (content, kind string) {
	t.Helper()
	m, err := f.Fetch(within(t), r)
	if err != nil {
		t.Fatalf("Fetch %s: %v: %v", r.URL, err, errors.Unwrap(err))
	}
	defer m.Close()
	read, err := io.ReadAll(m)
	if err != nil {
		t.Fatal(err)
	}
	if m.Size != int64(len(read)) {
		t.Errorf("Size is %d, %d bytes were read", m.Size, len(read))
	}
	return string(read), m.ContentType
}

// italian returns the Italian sentence of a reason.
var italian = catalogue.Italian.Sentence

// fails expects an error of this kind with this reason. The error's text must not reveal facts about our network.
func fails(t *testing.T, f *Fetcher, r puntuale.MediaRequest, kind puntuale.SendErrorKind, reason puntuale.ReasonCode) *puntuale.SendError {
	t.Helper()
	m, err := f.Fetch(within(t), r)
	if err == nil {
		m.Close()
		t.Fatalf("%s was fetched", r.URL)
	}
	e := puntuale.AsSendError(err)
	if e == nil {
		t.Fatalf("%s: the error is no SendError: %v", r.URL, err)
	}
	if e.Kind != kind || e.Reason.Code != reason {
		t.Errorf("%s: kind %d, %v, %v; want kind %d, %q", r.URL, e.Kind, e, e.Err, kind, reason)
	}
	for _, secret := range []string{"127.0.0.1", "10.0.0.", "dial ", "lookup"} {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("%s: the words tell about our network: %v", r.URL, e)
		}
	}
	return e
}

// eventually polls until holds returns true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(maxWait); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", maxWait, what)
		}
		<-time.After(time.Millisecond)
	}
}

// names is a DNS server in memory. It calls the function answer for each A query, with the number of earlier A queries.
func names(t *testing.T, answer func(name string, n int64) []netip.Addr) *net.Resolver {
	t.Helper()
	var asked atomic.Int64
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(ours, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(ours, query); err != nil {
					return
				}
				reply := reply(query, func(name string) []netip.Addr { return answer(name, asked.Add(1)-1) })
				if _, err := ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return theirs, nil
	}}
}

// reply encodes the answer to a query's first question (RFC 1035, 4.1). An A question gets addresses, and any other
// question gets none.
func reply(query []byte, answer func(name string) []netip.Addr) []byte {
	end, name := 12, ""
	for query[end] != 0 {
		name += string(query[end+1:end+1+int(query[end])]) + "."
		end += 1 + int(query[end])
	}
	end += 5
	var found []netip.Addr
	if binary.BigEndian.Uint16(query[end-4:]) == 1 {
		found = answer(name)
	}
	out := append([]byte{}, query[:2]...)
	out = append(out, 0x81, 0x80, 0, 1, 0, byte(len(found)), 0, 0, 0, 0)
	out = append(out, query[12:end]...)
	for _, a := range found {
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		out = append(out, a.AsSlice()...)
	}
	return out
}

// under returns the address of a path on the host.
func (h *host) under(path string) string { return h.URL + path }
