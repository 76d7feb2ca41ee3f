package httpkit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/httpkit"
)

// All accounts together hold at most the budget. No caller holds more than is left for others. In the end all memory is
// given back.
func TestBudget(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	var reasons []string
	b := httpkit.NewBudget(most, func(reason string) { reasons = append(reasons, reason) })
	var open []*httpkit.Account
	take := func(who httpkit.Share, bytes int64) error {
		a := b.Open(who)
		open = append(open, a)
		return a.Take(bytes)
	}
	n := 0
	for ; take(greedy, httpkit.MaxBody) == nil; n++ {
		if n > 1000 {
			t.Fatal("there is no end")
		}
	}
	if n < 20 || b.Held() > most/2 {
		t.Errorf("%d bodies take %d bytes", n, b.Held())
	}
	if err := take(modest, most/4); err != nil {
		t.Errorf("another's answer: %v", err)
	}
	if err := take(greedy, 1000); err != nil {
		t.Errorf("a small body: %v", err)
	}
	if err := take(greedy, httpkit.MaxBody); puntuale.CodeOf(err) != puntuale.CodeRateLimited {
		t.Errorf("one more of the greedy one's: %v", err)
	}
	if err := take(third, most/2); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
		t.Errorf("more than there is: %v", err)
	}
	if len(reasons) != 3 || reasons[0] != "caller" || reasons[2] != "bodies" {
		t.Errorf("%v", reasons)
	}
	for _, a := range open {
		a.Close()
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes are still held", b.Held())
	}
	if err := (*httpkit.Budget)(nil).Open(greedy).Take(most); err != nil {
		t.Errorf("without a budget: %v", err)
	}
}

// A body counts while it arrives. An announced length counts nothing. A body that arrived counts together with the values
// decoded from it.
func TestBodiesCountAsTheyCome(t *testing.T) {
	t.Parallel()
	b := httpkit.NewBudget(64<<20, nil)
	read := func(body io.Reader, length, most int64) (int, *httpkit.Account, error) {
		r := httptest.NewRequest(http.MethodPost, "/", body)
		r.ContentLength = length
		a := b.Open(greedy)
		got, err := httpkit.ReadBody(httptest.NewRecorder(), r, most, a)
		return len(got), a, err
	}
	slow, pipe := io.Pipe()
	done := make(chan error)
	go func() {
		_, a, err := read(slow, httpkit.MaxBody, httpkit.MaxBody)
		a.Close()
		done <- err
	}()
	if _, err := pipe.Write([]byte("x")); err != nil || b.Held() != 0 {
		t.Errorf("one byte of many holds %d, %v", b.Held(), err)
	}
	pipe.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-done; puntuale.CodeOf(err) != puntuale.CodeUnreadable {
		t.Errorf("a body that broke off: %v", err)
	}
	n, a, err := read(strings.NewReader(strings.Repeat("x", httpkit.MaxBody)), httpkit.MaxBody, httpkit.MaxBody)
	if err != nil || n != httpkit.MaxBody || b.Held() < 3*httpkit.MaxBody {
		t.Errorf("%d bytes hold %d, %v", n, b.Held(), err)
	}
	a.Close()
	for _, length := range []int64{-1, 101} {
		if _, a, err := read(strings.NewReader(strings.Repeat("x", 101)), length, 100); puntuale.CodeOf(err) != puntuale.CodeTooLarge {
			t.Errorf("announced as %d: %v", length, err)
		} else {
			a.Close()
		}
	}
	if b.Held() != 0 {
		t.Errorf("%d bytes are still held", b.Held())
	}
}

// Unknown callers count together by address, because one line has many IPv6 addresses.
func TestAddressShare(t *testing.T) {
	t.Parallel()
	share := func(text string) httpkit.Share { return httpkit.AddressShare(netip.MustParseAddr(text)) }
	if share("192.0.2.1") == share("192.0.2.2") || share("2001:db8::1") != share("2001:db8::ffff:1") || share("2001:db8::1") == share("2001:db8:0:1::1") {
		t.Error("addresses are told apart wrongly")
	}
	if httpkit.AddressShare(netip.Addr{}) != (httpkit.Share{}) {
		t.Error("no address is somebody")
	}
}
