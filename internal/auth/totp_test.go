package auth_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale/internal/auth"
)

// TestCode uses RFC 6238's test vectors for SHA-1. They have eight digits; our codes are the last six of them.
func TestCode(t *testing.T) {
	t.Parallel()
	secret := []byte("12345678901234567890")
	for seconds, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := auth.Code(secret, time.Unix(seconds, 0)); got != want[2:] {
			t.Errorf("at %d: %s, want %s", seconds, got, want[2:])
		}
	}
}

// TestCheckCode: the codes of the present time step and of its neighbours are accepted, each once.
func TestCheckCode(t *testing.T) {
	t.Parallel()
	secret, err := auth.NewSecret()
	if err != nil || len(secret) != 20 {
		t.Fatalf("%x, %v", secret, err)
	}
	now := time.Unix(1_800_000_000, 0)
	for _, away := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		if _, ok := auth.CheckCode(secret, auth.Code(secret, now.Add(away)), now, 0); !ok {
			t.Errorf("%v away does not fit", away)
		}
	}
	for _, wrong := range []string{"", "000000x", auth.Code(secret, now.Add(2*time.Minute)), auth.Code(secret, now.Add(-2*time.Minute))} {
		if _, ok := auth.CheckCode(secret, wrong, now, 0); ok {
			t.Errorf("%q fits", wrong)
		}
	}
	step, _ := auth.CheckCode(secret, auth.Code(secret, now), now, 0)
	if _, ok := auth.CheckCode(secret, auth.Code(secret, now), now, step); ok {
		t.Error("a code fits twice")
	}
}

func TestSecretURL(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(auth.SecretURL([]byte("12345678901234567890"), "Agenzia & Figli", "a@b.it"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/Agenzia & Figli:a@b.it" || u.Query().Get("issuer") != "Agenzia & Figli" ||
		u.Query().Get("secret") != "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" || strings.Contains(u.RawQuery, "+") {
		t.Errorf("%v, %v", u, err)
	}
}

func TestRecoveryCodes(t *testing.T) {
	t.Parallel()
	a, b := auth.NewRecoveryCode(), auth.NewRecoveryCode()
	if a == b || len(a) != 19 || auth.TidyCode(" "+strings.ToUpper(a)) != strings.ReplaceAll(a, "-", "") {
		t.Errorf("%q, %q", a, b)
	}
}

func TestWeak(t *testing.T) {
	t.Parallel()
	for _, weak := range []string{"", "corta", "password123", "Benvenuto2026", "aaaaaaaaaaaaaaa", "121212121212", "anna.rossi99", "Studio Bianchi1", "qwertyuiop"} {
		if !auth.Weak(weak, "anna.rossi@example.com", "Studio Bianchi") {
			t.Errorf("%q passes", weak)
		}
	}
	for _, good := range []string{"una frase per la demo", "tramonto sul lago", "k3jfh2lskdjf", "passwordtramontosullago"} {
		if auth.Weak(good, "anna.rossi@example.com", "Studio Bianchi") {
			t.Errorf("%q is weak", good)
		}
	}
}
