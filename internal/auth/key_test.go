package auth_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
)

var day = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

func TestNewKeyIsReadBack(t *testing.T) {
	t.Parallel()
	for side, prefix := range map[puntuale.Side]string{puntuale.PartnerSide: "pk_", puntuale.ClientSide: "ck_"} {
		plain, key, err := auth.NewKey(side, "first", day)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(plain, prefix) || len(plain) != auth.KeyLength {
			t.Errorf("key %q: want prefix %q and length %d", plain, prefix, auth.KeyLength)
		}
		if key.Hash != sha256.Sum256([]byte(plain)) || key.Name != "first" || !key.Created.Equal(day) {
			t.Errorf("kept %+v", key)
		}
		if !strings.HasPrefix(plain, key.Prefix) || len(key.Prefix) != 11 {
			t.Errorf("shown prefix %q of %q", key.Prefix, plain)
		}
		hash, got, ok := auth.ParseKey(plain)
		if !ok || hash != key.Hash || got != side {
			t.Errorf("ParseKey(%q) = %v, %q, %v", plain, hash, got, ok)
		}
	}
}

func TestNewKeyNeverRepeats(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		plain, _, err := auth.NewKey(puntuale.ClientSide, "", day)
		if err != nil || seen[plain] {
			t.Fatal(plain, err)
		}
		seen[plain] = true
	}
	if _, _, err := auth.NewKey("other", "", day); err == nil {
		t.Error("a key for no side was made")
	}
}

// ParseKey must refuse a key if any single character was changed. Therefore, guesses never reach the database.
func TestParseKeyRefusesEveryChange(t *testing.T) {
	t.Parallel()
	plain, _, err := auth.NewKey(puntuale.ClientSide, "", day)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		for _, c := range []byte("0aAz_ \n\x00\xff") {
			if plain[i] == c {
				continue
			}
			changed := []byte(plain)
			changed[i] = c
			if _, _, ok := auth.ParseKey(string(changed)); ok {
				t.Errorf("%q passes, changed at %d", changed, i)
			}
		}
	}
	for _, text := range []string{"", "ck_", "p" + plain[1:], plain + "0", plain[:len(plain)-1], " " + plain, strings.ToUpper(plain)} {
		if _, _, ok := auth.ParseKey(text); ok {
			t.Errorf("%q passes", text)
		}
	}
}

func TestSameKey(t *testing.T) {
	t.Parallel()
	if !auth.SameKey("ck_a", "ck_a") || auth.SameKey("ck_a", "ck_b") || auth.SameKey("ck_a", "ck_aa") || auth.SameKey("", "a") {
		t.Error("SameKey is wrong")
	}
}

func FuzzParseKey(f *testing.F) {
	plain, _, err := auth.NewKey(puntuale.PartnerSide, "", day)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{plain, "", "pk_", strings.Repeat("z", auth.KeyLength), "ck_" + plain[3:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hash, side, ok := auth.ParseKey(text)
		if ok && hash != sha256.Sum256([]byte(text)) {
			t.Error("the hash is not the text's")
		}
		if ok != (side != "") {
			t.Errorf("side %q, ok %v", side, ok)
		}
	})
}
