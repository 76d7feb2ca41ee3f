package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"puntuale/internal/clock"
)

func TestSystem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		began := c.Now()
		if began.Location() != time.UTC || began.Nanosecond()%1000 != 0 {
			t.Errorf("now is %v, want UTC in microseconds", began)
		}
		fired, stop := c.After(3 * time.Second)
		defer stop()
		<-fired
		if got := c.Now().Sub(began); got != 3*time.Second {
			t.Errorf("fired after %v", got)
		}
		if err := c.Sleep(t.Context(), 2*time.Second); err != nil {
			t.Error(err)
		}
		if got := c.Now().Sub(began); got != 5*time.Second {
			t.Errorf("slept until %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a sleep cut short: %v", err)
		}
	})
}

func TestFake(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 9, 0, 0, 1234, time.FixedZone("", 3600))
	c := clock.NewFake(start)
	if want := start.Truncate(time.Microsecond); !c.Now().Equal(want) || c.Now().Location() != time.UTC {
		t.Fatalf("shows %v, want %v", c.Now(), want)
	}
	now, _ := c.After(0)
	if _, ok := <-now; !ok {
		t.Fatal("a wait of nothing did not fire")
	}
	soon, _ := c.After(time.Second)
	later, _ := c.After(time.Minute)
	released, stop := c.After(time.Second)
	stop()
	c.Advance(999 * time.Millisecond)
	if fired(soon) {
		t.Error("fired early")
	}
	c.Advance(time.Millisecond)
	if !fired(soon) || fired(later) || fired(released) {
		t.Error("after a second, exactly the first must have fired")
	}
	c.Set(start.Add(-time.Hour))
	if fired(later) {
		t.Error("fired although the clock was set back")
	}
	c.Set(start.Add(time.Minute))
	if !fired(later) {
		t.Error("did not fire at its moment")
	}
}

func TestFakeSleep(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Unix(0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Sleep(ctx, time.Second) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep: %v", err)
	}
}

func fired(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestFakeWaitingUntil(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	c := clock.NewFake(start)
	other, stop := c.After(time.Minute)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.WaitingUntil(ctx, start.Add(time.Second)); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait for a minute counted as a wait for a second: %v", err)
	}
	go func() { _ = c.Sleep(t.Context(), time.Second) }()
	if err := c.WaitingUntil(t.Context(), start.Add(time.Second)); err != nil {
		t.Error(err)
	}
	if err := c.WaitingUntil(t.Context(), start.Add(time.Minute)); err != nil || fired(other) {
		t.Errorf("a wait that began before: %v", err)
	}
}
