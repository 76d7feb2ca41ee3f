package view

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGrouped(t *testing.T) {
	t.Parallel()
	for phone, want := range map[string]string{
		"+393331234567":         "+39 333 123 4567",
		"+390117654321":         "+39 011 765 4321",
		"+14155552671":          "+1 415 555 2671",
		"+447911123456":         "+44 7911 123456",
		"+5215512345678":        "+52 15512345678", // in the form that was usual until 2019
		"+999123456":            "+999123456",
		"+39 333 1234567":       "+39 333 1234567", // in the form in which somebody typed it
		"3331234567":            "3331234567",
		"120363041234567890":    "120363041234567890",
		"39333123456-162@g.us":  "39333123456-162@g.us",
		"12345678901234567@lid": "12345678901234567@lid",
		"+39<script>":           "+39<script>",
		"+":                     "+",
		"":                      "",
	} {
		if got := strings.ReplaceAll(Grouped(phone), apart, " "); got != want {
			t.Errorf("%s: %s instead of %s", phone, got, want)
		}
	}
}

// TestGroupedIsTheNumber: without the spaces, a grouped number is the original number, for any input.
func TestGroupedIsTheNumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phone := rapid.OneOf(rapid.StringMatching(`\+[1-9][0-9]{3,15}`), rapid.StringMatching(`\+39[03][0-9]{5,10}`), rapid.String()).Draw(t, "phone")
		if got := strings.ReplaceAll(Grouped(phone), apart, ""); got != strings.ReplaceAll(phone, apart, "") {
			t.Errorf("%q became %q", phone, got)
		}
	})
}
