package sendapp

import (
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
)

// TestWords: each reason that a gateway's words give has an Italian and an English sentence.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		says := puntuale.Because(r.says)
		if !catalogue.Known(r.says) || catalogue.English.Say(says) == catalogue.Italian.Say(says) {
			t.Errorf("%q says %q, and %q in English", r.fragment, catalogue.Italian.Say(says), catalogue.English.Say(says))
		}
	}
}

// TestFormerRestricted: the connector recognises rows of earlier versions by the sentence that they hold.
func TestFormerRestricted(t *testing.T) {
	t.Parallel()
	if says := catalogue.Italian.Say(puntuale.Because(reasonRestricted)); says != formerRestricted {
		t.Errorf("the sentence is %q, earlier versions stored %q", says, formerRestricted)
	}
}
