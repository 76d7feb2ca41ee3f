package control

import (
	"testing"

	"puntuale"
)

// A text must say how to opt out. In an approved template, any part may say it. Words that only look like an opt-out do
// not count.
func TestOptOutWarnings(t *testing.T) {
	t.Parallel()
	for text, hints := range map[string]bool{
		"Saldi! Rispondi STOP per non ricevere altri messaggi": true, "Per non ricevere più avvisi scrivi": true, "Se non desidera più ricevere avvisi, ci scriva": true,
		"Scrivi CANCELLAMI": true, "disiscriviti qui": true, "Puoi annullare l'iscrizione": true, "(stop)": true, "Reply stop.": true, "Unsubscribe: x": true, "to opt-out": true,
		"If you no longer want these": true,
		"Saldi non-stop":              false, "Vieni a trovarci": false, "Lo stoppino è acceso": false, "": false, "Non vuoi perderti gli sconti?": false,
	} {
		got := optOutWarnings("marketing", []puntuale.Step{{Text: "STOP"}, {Text: text}}, nil)
		if (len(got) == 0) != hints || len(got) > 0 && (got[0].Step != 1 || got[0].Code != puntuale.WarnsNoOptOut) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := optOutWarnings("service", []puntuale.Step{{Text: "x"}}, nil); got != nil {
		t.Errorf("of a service message: %+v", got)
	}
	step := puntuale.Step{Text: "Rispondi STOP", Official: &puntuale.Approved{Name: "promo", Language: "en-US"}}
	template := puntuale.NetworkTemplate{Name: "promo", Language: "en_US", Parts: []puntuale.TemplatePart{{Kind: "BODY", Text: "Sales!"}}}
	for name, c := range map[string]struct {
		parts []puntuale.TemplatePart
		known bool
		hints bool
	}{
		"unknown":   {nil, false, true},
		"no hint":   {nil, true, false},
		"footer":    {[]puntuale.TemplatePart{{Kind: "FOOTER", Text: "Reply STOP to opt out"}}, true, true},
		"one press": {[]puntuale.TemplatePart{{Kind: "BUTTONS", Buttons: []puntuale.TemplateButton{{Kind: "QUICK_REPLY", Text: "Stop promotions"}}}}, true, true},
	} {
		var known []puntuale.NetworkTemplate
		if c.known {
			with := template
			with.Parts = append(with.Parts[:1:1], c.parts...)
			known = append(known, with)
		}
		if got := optOutWarnings("marketing", []puntuale.Step{step}, known); (len(got) == 0) != c.hints {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
