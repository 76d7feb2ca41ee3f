package page

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestBrandIsReadable: for every colour of a partner, text in the colour and text on the colour have the contrast of
// WCAG AA.
func TestBrandIsReadable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		colour := rapid.StringMatching(`#[0-9a-f]{6}`).Draw(t, "colour")
		style := brandStyle(colour)
		value := func(name string) RGB {
			_, rest, _ := strings.Cut(style, name+":")
			return ParseColour(rest[:7])
		}
		for name, paper := range map[string]paperColour{"--brand": LightPaper, "--brand-dark": darkPaper} {
			if c := paper.worst(value(name)); c < 4.5 {
				t.Errorf("%s on its paper: %.2f", name, c)
			}
			if c := contrast(value(name), value(name+"-ink")); c < 4.5 {
				t.Errorf("what is written on %s: %.2f", name, c)
			}
		}
	})
}

// TestReadableColourStays: a colour that is already readable does not change.
func TestReadableColourStays(t *testing.T) {
	t.Parallel()
	if style := brandStyle("#204080"); !strings.Contains(style, "--brand:#204080;") {
		t.Error(style)
	}
}
