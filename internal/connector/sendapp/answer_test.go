package sendapp

import (
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
)

// TestWords: each reason for a gateway's text has an Italian and an English sentence.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		says := puntuale.Because(r.reason)
		if !catalogue.HasSentence(r.reason) || catalogue.English.Sentence(says) == catalogue.Italian.Sentence(says) {
			t.Errorf("%q says %q, and %q in English", r.fragment, catalogue.Italian.Sentence(says), catalogue.English.Sentence(says))
		}
	}
}

// TestFormerRestricted: the connector recognises rows of earlier versions by the sentence in them.
func TestFormerRestricted(t *testing.T) {
	t.Parallel()
	if says := catalogue.Italian.Sentence(puntuale.Because(reasonRestricted)); says != formerRestricted {
		t.Errorf("the sentence is %q, earlier versions stored %q", says, formerRestricted)
	}
}
