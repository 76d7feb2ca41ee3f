package auth_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/auth"
)

// TestTapPayload reads its own payloads, and refuses every other one.
func TestTapPayload(t *testing.T) {
	t.Parallel()
	v, err := auth.NewVault(bytes.Repeat([]byte{7}, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	other, err := auth.NewVault(bytes.Repeat([]byte{8}, auth.DataKeySize))
	if err != nil {
		t.Fatal(err)
	}
	tap := puntuale.Tap{Message: 123456789, Button: 1}
	payload := v.TapPayload(5, tap)
	if got, ok := v.ReadTap(5, payload); !ok || got != tap {
		t.Errorf("%q is %+v, %t", payload, got, ok)
	}
	owned := puntuale.Tap{Message: 123456789, Button: 9, Payload: "ordine.17 sì."}
	ordered := v.TapPayload(5, owned)
	if got, ok := v.ReadTap(5, ordered); !ok || got != owned {
		t.Errorf("%q is %+v, %t", ordered, got, ok)
	}
	for _, wrong := range []string{strings.Replace(ordered, "17", "18", 1), payload + ".x", strings.TrimSuffix(ordered, ".ordine.17 sì."), payload + "."} {
		if got, ok := v.ReadTap(5, wrong); ok {
			t.Errorf("%q passes as %+v", wrong, got)
		}
	}
	if n := len(v.TapPayload(math.MaxInt64, puntuale.Tap{Message: math.MaxInt64, Button: 2})); n > 64 {
		t.Errorf("a payload has %d characters", n)
	}
	moved := v.TapPayload(5, puntuale.Tap{Message: 123456789, Button: 0})
	for _, wrong := range []string{"", "Confermo", "p1.", "p1.a.b.c", payload[:len(payload)-1], payload + "A", moved[:len(moved)-5] + payload[len(payload)-5:], other.TapPayload(5, tap), v.TapPayload(6, tap)} {
		if got, ok := v.ReadTap(5, wrong); ok && got == tap {
			t.Errorf("%q passes", wrong)
		}
	}
}
