package view

import (
	"slices"
	"testing"
)

func TestDateWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Ciao Lucia, ti aspettiamo venerdì 27 novembre alle 10:30.": {"venerdì 27 novembre", "10:30"},
		"Ci vediamo domani! A presto":                               {"domani"},
		"Scade il 28/02/2027, non dopo le 9.30":                     {"28/02/2027", "9.30"},
		"See you on Friday, 27 November at 10:30":                   {"Friday, 27 November", "10:30"},
		"il 3 maggio, il 4 maggio, il 5 maggio e il 6 maggio":       {"3 maggio", "4 maggio", "5 maggio"},
		"2026-11-28":                             {"2026-11-28"},
		"Grazie, la tua ordinazione è pronta.":   nil,
		"Il codice è 123456, chiama 333 1234567": nil,
		"Domanica e oggigiorno non sono giorni":  nil,
		"":                                       nil,
	} {
		if got := DateWords(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q instead of %q", text, got, want)
		}
	}
}
