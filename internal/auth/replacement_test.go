package auth_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
)

func replacement(t *testing.T, s *secrets, master []byte) *auth.Replacement {
	t.Helper()
	r, err := auth.BeginReplacement(context.Background(), s, master)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestVaultFollows: a server that was away reads the keys when it meets something that it cannot open, and before it seals.
// It does not read them for each of many unknown values.
func TestVaultFollows(t *testing.T) {
	t.Parallel()
	for _, master := range [][]byte{nil, []byte(strings.Repeat("m", 32))} {
		s, now := &secrets{values: map[string][]byte{}}, clock.NewFake(time.Unix(1e9, 0))
		follow := func() *auth.Vault {
			v := openVault(t, s, master)
			v.Follow(s, now, func(context.Context) ([]byte, error) { return master, nil })
			return v
		}
		slow, asleep := follow(), follow()
		before := slow.Seal(puntuale.SealedWebhook, "w", []byte("before"))
		r := replacement(t, s, master)
		must(t, r.Switch(context.Background()))
		after := openVault(t, s, master).Seal(puntuale.SealedWebhook, "w", []byte("after"))
		if _, err := slow.Open(puntuale.SealedWebhook, "w", after); err == nil || slow.Version() != 1 {
			t.Error("the keys are read again at once after they were read")
		}
		now.Advance(time.Second)
		if plain, err := slow.Open(puntuale.SealedWebhook, "w", after); err != nil || string(plain) != "after" || slow.Version() != 3 {
			t.Errorf("%q, %v, version %d", plain, err, slow.Version())
		}
		s.reads = 0
		for range 1000 {
			_, _ = slow.Open(puntuale.SealedWebhook, "w", []byte("sent by somebody, and opened by nothing"))
		}
		if s.reads > 1 {
			t.Errorf("the keys were read %d times", s.reads)
		}
		must(t, r.End(context.Background()))
		now.Advance(time.Hour)
		late := asleep.Seal(puntuale.SealedWebhook, "w", []byte("late"))
		if plain, err := openVault(t, s, master).Open(puntuale.SealedWebhook, "w", late); err != nil || string(plain) != "late" {
			t.Errorf("a server that slept seals with the former key: %v", err)
		}
		if plain, err := asleep.Open(puntuale.SealedWebhook, "w", before); err != nil || string(plain) != "before" {
			t.Errorf("what a server has in memory from before does not open: %v", err)
		}
		if _, err := openVault(t, s, master).Open(puntuale.SealedWebhook, "w", before); err == nil {
			t.Error("the former key is still stored")
		}
	}
}

// TestReplacementSteps: each step may be made by another process, and again. A process that is behind by a whole
// replacement changes nothing.
func TestReplacementSteps(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), &secrets{values: map[string][]byte{}}
	if _, err := auth.BeginReplacement(ctx, s, nil); !errors.Is(err, auth.ErrNothingSealed) {
		t.Errorf("before the first start: %v", err)
	}
	openVault(t, s, nil)
	one, two := replacement(t, s, nil), replacement(t, s, nil)
	must(t, one.Switch(ctx))
	must(t, two.Switch(ctx))
	if one.Version() != 3 || two.Version() != 3 {
		t.Errorf("versions %d and %d", one.Version(), two.Version())
	}
	must(t, one.End(ctx))
	must(t, one.End(ctx))
	must(t, two.End(ctx))
	if v := openVault(t, s, nil).Version(); v != 4 {
		t.Errorf("version %d", v)
	}
	behind := replacement(t, s, nil)
	next := replacement(t, s, nil)
	must(t, next.Switch(ctx))
	must(t, next.End(ctx))
	for range 2 { // the next one has begun, and then its key seals
		next = replacement(t, s, nil)
		kept := string(s.values["data key"])
		for name, step := range map[string]func(context.Context) error{"switch": behind.Switch, "end": behind.End} {
			if err := step(ctx); !errors.Is(err, auth.ErrOtherReplacement) || string(s.values["data key"]) != kept {
				t.Errorf("%s after another replacement: %v", name, err)
			}
		}
		must(t, next.Switch(ctx))
	}
}

// TestReplacementUnderMasterKeys: the master key may come, or change, between the steps.
func TestReplacementUnderMasterKeys(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), &secrets{values: map[string][]byte{}}
	one, two := []byte(strings.Repeat("1", 32)), []byte(strings.Repeat("2", 32))
	sealed := openVault(t, s, nil).Seal(puntuale.SealedWebhook, "w", []byte("x"))
	r := replacement(t, s, nil)
	sealed, err := r.Again(puntuale.SealedWebhook, "w", sealed)
	must(t, err)
	openVault(t, s, one) // wraps the keys
	if err := r.Switch(ctx); !errors.Is(err, auth.ErrMasterKey) {
		t.Errorf("with no master key: %v", err)
	}
	must(t, auth.Rewrap(ctx, s, one, two))
	if _, err := auth.BeginReplacement(ctx, s, one); !errors.Is(err, auth.ErrMasterKey) {
		t.Errorf("with the former master key: %v", err)
	}
	r = replacement(t, s, two)
	must(t, r.Switch(ctx))
	must(t, r.End(ctx))
	must(t, auth.Rewrap(ctx, s, two, one))
	if plain, err := openVault(t, s, one).Open(puntuale.SealedWebhook, "w", sealed); err != nil || string(plain) != "x" {
		t.Errorf("%q, %v", plain, err)
	}
	kept := s.values["data key"]
	for i := range kept { // its version too is protected
		s.values["data key"] = append([]byte{}, kept...)
		s.values["data key"][i] ^= 1
		if _, err := auth.OpenVault(ctx, s, one); err == nil {
			t.Fatalf("byte %d was changed, and the keys were taken", i)
		}
	}
}
