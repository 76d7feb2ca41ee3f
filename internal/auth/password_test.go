package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"puntuale/internal/auth"
)

func TestPassword(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, plain := range []string{"x", "città ☃ \x00", strings.Repeat("long ", 300)} {
		hash, err := auth.HashPassword(ctx, auth.KnownAs("x"), plain)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("hash %q does not name its parameters", hash)
		}
		if ok, err := auth.CheckPassword(ctx, auth.KnownAs("x"), plain, hash); !ok || err != nil {
			t.Errorf("the right password: %v, %v", ok, err)
		}
		if ok, err := auth.CheckPassword(ctx, auth.KnownAs("x"), plain+".", hash); ok || err != nil {
			t.Errorf("a wrong password: %v, %v", ok, err)
		}
	}
	if _, err := auth.CheckPassword(ctx, auth.KnownAs("x"), "x", "not a hash"); err == nil {
		t.Error("an unreadable hash is no error")
	}
}

func TestPasswordSalts(t *testing.T) {
	t.Parallel()
	a, errA := auth.HashPassword(t.Context(), auth.KnownAs("x"), "same")
	b, errB := auth.HashPassword(t.Context(), auth.KnownAs("x"), "same")
	if errA != nil || errB != nil || a == b {
		t.Errorf("%q %q %v %v", a, b, errA, errB)
	}
}

// A caller that stops waiting for a slot gets the context's error, and all other callers are served.
func TestPasswordWaits(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := auth.HashPassword(t.Context(), auth.KnownAs("x"), "busy"); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := auth.HashPassword(gone, auth.KnownAs("x"), "busy"); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
