package control

import (
	"testing"

	"puntuale"
	"puntuale/internal/catalogue"
)

func TestMediaWarning(t *testing.T) {
	t.Parallel()
	for _, try := range []struct {
		media, text string
		network     puntuale.ConnectionType
		warned      bool
	}{
		{"", "ciao", puntuale.Socket, false},
		{"https://a.example/x.JPG?y=.mp3", "ciao", puntuale.Socket, false},
		{"https://a.example/x.MP3?y=1", "ciao", puntuale.Socket, true},
		{"https://a.example/x.mp3", "", puntuale.Socket, false},
		{"https://a.example/x.webp", "", puntuale.Socket, false},
		{"https://a.example/x.webp", "", puntuale.Official, true},
		{"https://a.example/x.pdf", "ciao", puntuale.Official, false},
		{"https://a.example/{{file}}.webp", "ciao", puntuale.Official, false},
		{"https://a.example/x", "ciao", puntuale.Official, false},
	} {
		if says := mediaWarning(puntuale.Step{Media: try.media, Text: try.text}, try.network); (says != "") != try.warned {
			t.Errorf("%+v: %q", try, says)
		} else if says != "" && !catalogue.HasSentence(says) {
			t.Errorf("%q has no sentence", says)
		}
	}
	approved := puntuale.Step{Media: "https://a.example/x.mp3", Text: "ciao", Official: &puntuale.Approved{Name: "x"}}
	if says := mediaWarning(approved, puntuale.Official); says != "" {
		t.Errorf("an approved template has no text of its own: %s", says)
	}
}
