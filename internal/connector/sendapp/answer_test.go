package sendapp

import (
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
)

// TestPanickingPicture: if the library panics at a gateway's picture, the gateway only has no code.
func TestPanickingPicture(t *testing.T) {
	t.Parallel()
	code, err := guarded(func(string) (string, error) { panic("index out of range") }, "data:image/png;base64,")
	if code != "" || err == nil {
		t.Errorf("%q, %v", code, err)
	}
}

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
