package sendapp

import (
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
)

// TestWords: each meaning of a gateway's words has a sentence in Italian, and another one in English.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		says := puntuale.Because(r.says)
		if !catalogue.Known(r.says) || catalogue.English.Say(says) == catalogue.Italian.Say(says) {
			t.Errorf("%q says %q, and %q in English", r.fragment, catalogue.Italian.Say(says), catalogue.English.Say(says))
		}
	}
}

// TestFormerRestricted: rows of earlier versions are found by the sentence that they hold.
func TestFormerRestricted(t *testing.T) {
	t.Parallel()
	if says := catalogue.Italian.Say(puntuale.Because(reasonRestricted)); says != formerRestricted {
		t.Errorf("the sentence is %q, earlier versions stored %q", says, formerRestricted)
	}
}
