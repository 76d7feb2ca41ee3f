package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"puntuale"
	"puntuale/internal/auth"
)

func unknownCaller(i int) auth.HashCaller {
	return auth.UnknownCallerAt(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}))
}

// line is a queue whose only slot is in use, and the results of all later callers.
type line struct {
	t     *testing.T
	queue *auth.Queue
	first func() // releases the slot that is in use

	mu      sync.Mutex
	served  []string
	refused []string
}

// newLine must be called inside a synctest bubble.
func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{t: t, queue: auth.NewQueue(1)}
	var err error
	if l.first, err = l.queue.Enter(t.Context(), auth.KnownAs("first")); err != nil {
		t.Fatal(err)
	}
	return l
}

// come starts a caller that enters the queue, and returns when the caller waits or was refused.
func (l *line) come(ctx context.Context, name string, a auth.HashCaller) {
	l.t.Helper()
	go func() {
		leave, err := l.queue.Enter(ctx, a)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.refused = append(l.refused, name)
			if e, ok := errors.AsType[*puntuale.Error](err); ctx.Err() == nil && (!ok || e.Code != puntuale.CodeRateLimited || e.RetryAfter <= 0) {
				l.t.Errorf("%s: %v", name, err)
			}
			return
		}
		l.served = append(l.served, name)
		leave()
	}()
	synctest.Wait()
}

// TestHashSlots: callers are served in rotation, so many callers from one address delay any other caller by only one
// hash. Known callers alternate with unknown ones.
func TestHashSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		for i := range 3 {
			l.come(t.Context(), fmt.Sprint("flood", i), unknownCaller(1))
		}
		l.come(t.Context(), "good", unknownCaller(2))
		l.come(t.Context(), "known", auth.KnownAs("user 1"))
		l.first()
		synctest.Wait()
		if want := []string{"flood0", "known", "good", "flood1", "flood2"}; !slices.Equal(l.served, want) {
			t.Errorf("served %v, want %v", l.served, want)
		}
	})
}

// TestHashSlotsAreBounded: one address can use only its own part of the queue. When the queue is full, this address
// loses places to other addresses.
func TestHashSlotsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		for i := range 9 {
			l.come(t.Context(), fmt.Sprint("a", i), unknownCaller(1))
		}
		if !slices.Equal(l.refused, []string{"a8"}) {
			t.Fatalf("refused of one address: %v", l.refused)
		}
		for i := range 24 { // the queue is full
			l.come(t.Context(), fmt.Sprint("b", i), unknownCaller(2+i/8))
		}
		l.come(t.Context(), "late", unknownCaller(9))
		if len(l.refused) != 2 || slices.Contains(l.refused, "late") {
			t.Errorf("a newcomer does not displace who has many: %v", l.refused)
		}
		l.come(t.Context(), "known", auth.KnownAs("user 1"))
		l.first()
		synctest.Wait()
		if len(l.served) != 33 || !slices.Contains(l.served, "late") || !slices.Contains(l.served, "known") {
			t.Errorf("served %d: %v", len(l.served), l.served)
		}
		leave, err := l.queue.Enter(t.Context(), unknownCaller(1)) // all slots were released
		if err != nil {
			t.Fatal(err)
		}
		leave()
	})
}

// TestHashSlotGivenUp: a waiter that gives up leaves the queue.
func TestHashSlotGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		ctx, cancel := context.WithCancel(t.Context())
		l.come(ctx, "gone", unknownCaller(1))
		l.come(t.Context(), "stays", unknownCaller(1))
		cancel()
		synctest.Wait()
		l.first()
		synctest.Wait()
		if !slices.Equal(l.served, []string{"stays"}) || !slices.Equal(l.refused, []string{"gone"}) {
			t.Errorf("served %v, refused %v", l.served, l.refused)
		}
	})
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "2001:db8:1:2::7": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := auth.Network(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
	}
}
