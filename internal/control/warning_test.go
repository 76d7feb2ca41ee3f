package control

import (
	"testing"
	"time"

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

// TestQuickReplyWarning: outside of the 24-hour window, the buttons of a step are the quick replies of its template.
func TestQuickReplyWarning(t *testing.T) {
	t.Parallel()
	template := puntuale.NetworkTemplate{Name: "x", Language: "it", Status: puntuale.TemplateApproved, Parts: []puntuale.TemplatePart{{Kind: "BODY", Text: "Vieni?"},
		{Kind: "BUTTONS", Buttons: []puntuale.TemplateButton{{Kind: "URL", Text: "Apri"}, {Kind: "QUICK_REPLY", Text: "Sì"}, {Kind: "QUICK_REPLY", Text: "No"}}}}}
	step := puntuale.Step{Official: &puntuale.Approved{Name: "x", Language: "it"}}
	for n, want := range []puntuale.ReasonCode{"", "", "", reasonFewQuickReplies} {
		step.Buttons = make([]puntuale.StepButton, n)
		got := stepWarning(step, puntuale.NetworkTemplates{Synced: time.Unix(1, 0)}, []puntuale.NetworkTemplate{template})
		if got.Code != want {
			t.Errorf("%d buttons: %v", n, got)
		}
		if want != "" && !catalogue.HasSentence(want) {
			t.Errorf("%q has no sentence", want)
		}
	}
}
