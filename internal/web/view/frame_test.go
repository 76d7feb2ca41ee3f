package view_test

import (
	"testing"

	"puntuale/internal/web/language"
	"puntuale/internal/web/view"
)

// TestAmount: amounts have two decimals and their currency, and what is not zero does not look like zero.
func TestAmount(t *testing.T) {
	t.Parallel()
	ctx := view.With(t.Context(), &view.Frame{Language: language.Named("it")})
	for exact, want := range map[string]string{
		"4.6500": "4,65\u00a0EUR", "0.0000": "0,00\u00a0EUR", "0.00": "0,00\u00a0EUR", "7": "7,00\u00a0EUR", "0.3000": "0,30\u00a0EUR", "2.0398": "2,04\u00a0EUR",
		"0.0456": "0,05\u00a0EUR", "0.995": "1,00\u00a0EUR", "-0.0658": "−0,07\u00a0EUR", "0.0030": "<0,01\u00a0EUR", "-0.0030": ">−0,01\u00a0EUR",
		"12345.678": "12.345,68\u00a0EUR", "": "–",
	} {
		if got := view.Amount(ctx, exact, "EUR"); got != want {
			t.Errorf("%q is %q, want %q", exact, got, want)
		}
	}
}
