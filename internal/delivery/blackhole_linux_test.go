package delivery_test

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/delivery"
)

// TestBlackHole: a host that never completes a connection delays other receivers no longer than the answer's time
// limit.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	c := newCaller(func(cfg *delivery.CallerConfig) { cfg.Within = 500 * time.Millisecond })
	began := time.Now()
	got := c.Call(t.Context(), target("http://"+silent(t)+"/hook"), sent)
	if took := time.Since(began); took < 400*time.Millisecond || took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if got.Status != 0 || puntuale.ParseReason(got.Answer).Code != puntuale.ReasonWebhookTimeout {
		t.Errorf("%+v", got)
	}
}

// silent returns an address that never answers: no program accepts its connections, and their queue is full.
func silent(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	at, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("the socket has the address %v", name)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	for range 8 {
		c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return address // the queue of connections is full
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue of connections never fills")
	return ""
}
