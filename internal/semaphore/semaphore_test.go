package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"puntuale/internal/semaphore"
)

func partner(name string) semaphore.Holder {
	return semaphore.Holder{Key: name, Slots: semaphore.FairShare}
}

func client(name string) semaphore.Holder { return semaphore.Holder{Key: name, Slots: 3} }

// taken takes slots until there is none left for the path, and returns how many it got.
func taken(s *semaphore.Semaphore, path ...semaphore.Holder) (n int) {
	for {
		if _, ok := s.TryEnter(path...); !ok {
			return n
		}
		n++
	}
}

// TestShares: neither a client nor a partner with many clients gets all slots. Those that come later get some, too.
func TestShares(t *testing.T) {
	t.Parallel()
	s := semaphore.New(32)
	if n := taken(s, partner("a"), client("hostile")); n != 3 {
		t.Errorf("a client got %d slots, want 3", n)
	}
	all := 3
	for i := range 20 {
		all += taken(s, partner("a"), client(fmt.Sprint(i)))
	}
	if all != 16 {
		t.Errorf("a partner got %d slots, want 16", all)
	}
	for _, next := range []struct {
		partner string
		want    int
	}{{"b", 3}, {"c", 3}, {"d", 3}, {"e", 3}, {"f", 2}, {"g", 1}, {"h", 1}} {
		if n := taken(s, partner(next.partner), client("first")); n != next.want {
			t.Errorf("partner %s got %d slots, want %d", next.partner, n, next.want)
		}
	}
	if n := taken(s, partner("a"), client("late")); n != 0 {
		t.Errorf("a partner got %d more slots than its share", n)
	}
}

// TestWaitersAreServedInRotation: the calls of a busy client delay the call of another by one turn only.
func TestWaitersAreServedInRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		first, _ := s.TryEnter(partner("z"))
		var mu sync.Mutex
		var served []string
		for _, path := range [][2]string{{"a", "1"}, {"a", "1"}, {"a", "2"}, {"b", "3"}, {"a", "1"}} {
			go func() {
				leave, err := s.Enter(t.Context(), partner(path[0]), client(path[1]))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served = append(served, path[0]+path[1])
				mu.Unlock()
				leave()
				leave() // a second leave does nothing
			}()
			synctest.Wait()
		}
		first()
		synctest.Wait()
		if want := []string{"a1", "b3", "a2", "a1", "a1"}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
	})
}

// TestQueueIsBounded: the holder with the most waiting calls loses a place to a newcomer. A single holder gets no more
// places than its own.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := semaphore.New(1)
		first, _ := s.TryEnter()
		all := semaphore.Holder{Key: "all", Waiters: 4}
		var mu sync.Mutex
		got := map[string]int{}
		come := func(name string) {
			go func() {
				leave, err := s.Enter(t.Context(), all, semaphore.Holder{Key: name, Waiters: 3})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got[name]++
					leave()
				} else if !errors.Is(err, semaphore.ErrFull) {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for _, name := range []string{"a", "a", "a", "a", "b", "c", "d", "d"} {
			come(name)
		}
		first()
		synctest.Wait()
		if want := "map[a:1 b:1 c:1 d:1]"; fmt.Sprint(got) != want {
			t.Errorf("served %v, want %s", got, want)
		}
	})
}

// TestNothingIsLost: whatever callers do, no holder has more than its slots, and in the end all slots are free.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any value is good enough
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		const slots, each = 4, 2
		s := semaphore.New(slots)
		var mu sync.Mutex
		inside, own := 0, map[string]int{}
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a test needs no secure random numbers
				time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(200))*time.Millisecond)
				defer cancel()
				name := fmt.Sprint(r.IntN(5))
				leave, err := s.Enter(ctx, semaphore.Holder{Key: "all", Waiters: 30}, semaphore.Holder{Key: name, Slots: each, Waiters: 10})
				if err != nil {
					return
				}
				mu.Lock()
				inside++
				own[name]++
				if inside > slots || own[name] > each {
					t.Errorf("%d inside, %d of %s", inside, own[name], name)
				}
				mu.Unlock()
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				mu.Lock()
				inside--
				own[name]--
				mu.Unlock()
				leave()
			})
		}
		calls.Wait()
		if n := s.Holders(); n != 0 {
			t.Errorf("the semaphore remembers %d holders that left", n)
		}
		if n := taken(s, semaphore.Holder{Key: "late"}); n != slots {
			t.Errorf("%d slots are free in the end, want %d", n, slots)
		}
	})
}
