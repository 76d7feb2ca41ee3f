package auth_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"

	"puntuale/internal/auth"
)

func newVault(t *testing.T) *auth.Vault {
	t.Helper()
	v, err := auth.NewVault(bytes.Repeat([]byte{7}, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVaultSeals(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	plain := []byte("2@codice,abc==")
	sealed := v.Seal("command", "session 12", plain)
	if bytes.Contains(sealed, plain) || bytes.Equal(sealed, v.Seal("command", "session 12", plain)) {
		t.Error("sealed text shows, or is the same twice")
	}
	if got, err := v.Open("command", "session 12", sealed); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%q, %v", got, err)
	}
	other, _ := auth.NewVault(bytes.Repeat([]byte{8}, auth.DataKeySize))
	damaged := append([]byte{}, sealed...)
	damaged[len(damaged)-1] ^= 1
	for what, open := range map[string]func() ([]byte, error){
		"another place":   func() ([]byte, error) { return v.Open("command", "session 13", sealed) },
		"another purpose": func() ([]byte, error) { return v.Open("calendar", "session 12", sealed) },
		"another key":     func() ([]byte, error) { return other.Open("command", "session 12", sealed) },
		"damaged":         func() ([]byte, error) { return v.Open("command", "session 12", damaged) },
		"nothing":         func() ([]byte, error) { return v.Open("command", "session 12", nil) },
	} {
		if got, err := open(); err == nil {
			t.Errorf("%s: opened to %q", what, got)
		}
	}
	if _, err := auth.NewVault(make([]byte, 31)); err == nil {
		t.Error("a short data key was taken")
	}
}

func TestVaultMarks(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	other, _ := auth.NewVault(bytes.Repeat([]byte{8}, auth.DataKeySize))
	mark := v.Mark("blacklist", "1", "+393331234567")
	if len(mark) != 43 || mark != v.Mark("blacklist", "1", "+393331234567") {
		t.Errorf("%q", mark)
	}
	for _, different := range []string{
		v.Mark("blacklist", "2", "+393331234567"), v.Mark("blacklist", "1+39", "3331234567"), v.Mark("other", "1", "+393331234567"),
		other.Mark("blacklist", "1", "+393331234567"),
	} {
		if different == mark {
			t.Error("two marks are the same")
		}
	}
}

// secrets is a store of secrets in memory.
type secrets struct {
	mu     sync.Mutex
	values map[string][]byte
	reads  int
}

func (s *secrets) Secret(_ context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.values[name], nil
}

func (s *secrets) SetSecret(_ context.Context, name string, old, value []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.values[name], old) || (old == nil) != (s.values[name] == nil) {
		return false, nil
	}
	s.values[name] = value
	return true, nil
}

func TestOpenVault(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), &secrets{values: map[string][]byte{}}
	master := []byte(rand.Text() + rand.Text())
	first := openVault(t, s, nil)
	mark := first.Mark("x", "y")
	if again := openVault(t, s, nil); again.Mark("x", "y") != mark {
		t.Error("another data key at the second start")
	}
	if wrapped := openVault(t, s, master); wrapped.Mark("x", "y") != mark {
		t.Error("another data key once it was wrapped")
	}
	for name, value := range s.values {
		if _, err := auth.NewVault(value[1:]); err == nil {
			t.Errorf("%s still lies there as it is", name)
		}
	}
	if again := openVault(t, s, master); again.Mark("x", "y") != mark {
		t.Error("another data key after it was wrapped")
	}
	for _, wrong := range [][]byte{nil, []byte(strings.Repeat("x", 40))} {
		if _, err := auth.OpenVault(ctx, s, wrong); !errors.Is(err, auth.ErrMasterKey) {
			t.Errorf("master key %q: %v", wrong, err)
		}
	}
	s.values["data key"] = []byte("p short")
	if _, err := auth.OpenVault(ctx, s, nil); err == nil {
		t.Error("a damaged data key was taken")
	}
}

func openVault(t *testing.T, s *secrets, master []byte) *auth.Vault {
	t.Helper()
	v, err := auth.OpenVault(context.Background(), s, master)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Nodes that start at the same time use one data key.
func TestOpenVaultAtOnce(t *testing.T) {
	t.Parallel()
	s := &secrets{values: map[string][]byte{}}
	marks := make([]string, 8)
	var all sync.WaitGroup
	for i := range marks {
		all.Go(func() {
			if v, err := auth.OpenVault(context.Background(), s, nil); err == nil {
				marks[i] = v.Mark("x")
			}
		})
	}
	all.Wait()
	for _, m := range marks {
		if m == "" || m != marks[0] {
			t.Fatalf("%q", marks)
		}
	}
}

// TestRewrap: what was sealed before can be opened after the master key was replaced. A wrong key changes nothing.
func TestRewrap(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), &secrets{values: map[string][]byte{}}
	one, two, three := []byte(strings.Repeat("1", 32)), []byte(strings.Repeat("2", 32)), []byte(strings.Repeat("3", 32))
	if err := auth.Rewrap(ctx, s, one, two); !errors.Is(err, auth.ErrNothingSealed) {
		t.Errorf("before the first start: %v", err)
	}
	v, err := auth.OpenVault(ctx, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	sealed := v.Seal("command", "session 1", []byte("secret"))
	for _, step := range []struct{ old, master []byte }{{nil, one}, {one, two}} {
		if err := auth.Rewrap(ctx, s, step.old, step.master); err != nil {
			t.Fatal(err)
		}
	}
	before := s.values["data key"]
	for _, wrong := range [][]byte{nil, one, three} {
		if err := auth.Rewrap(ctx, s, wrong, three); !errors.Is(err, auth.ErrMasterKey) || !bytes.Equal(before, s.values["data key"]) {
			t.Errorf("with a wrong key: %v", err)
		}
		if _, err := auth.OpenVault(ctx, s, wrong); !errors.Is(err, auth.ErrMasterKey) {
			t.Errorf("a former key opens the vault: %v", err)
		}
	}
	again, err := auth.OpenVault(ctx, s, two)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := again.Open("command", "session 1", sealed); err != nil || string(plain) != "secret" {
		t.Errorf("%q, %v", plain, err)
	}
}
