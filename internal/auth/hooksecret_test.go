package auth_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/auth"
)

// A hook's secret is not a valid key, and a key is not a valid hook's secret.
func TestHookSecret(t *testing.T) {
	t.Parallel()
	plain, hash, err := auth.NewHookSecret()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := auth.ParseHookSecret(plain); !ok || got != hash || hash != sha256.Sum256([]byte(plain)) || !strings.HasPrefix(plain, "hk_") {
		t.Errorf("%q: %v, %v", plain, got, ok)
	}
	if _, _, ok := auth.ParseKey(plain); ok {
		t.Error("a hook's secret is a key")
	}
	key, _, err := auth.NewKey(puntuale.ClientSide, "", day)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "hk_", plain[:len(plain)-1], plain + "0", "h" + key[1:], key, strings.ToUpper(plain), plain[:10] + "0" + plain[11:] + "x"} {
		if _, ok := auth.ParseHookSecret(text); ok {
			t.Errorf("%q passes", text)
		}
	}
}
