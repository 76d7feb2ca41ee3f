package control

import (
	"regexp"

	"puntuale"
)

// optOut finds a hint how to get no more messages. The words are those that docs/campaigns.md lists.
var optOut = regexp.MustCompile(`(?i)(^|[^-\w])(stop\b|disiscri|cancell(ami|ati|arti|arsi)\b|annulla(re)? l.iscrizione|` +
	`non (voglio|vuoi|vuole|desider\w+|ricever\w*)( ricevere)? (pi\x{f9}|altr)|unsubscrib|opt[ -]?out|no longer (receive|want))`)

// optOutWarnings names the steps of a marketing campaign whose text gives no hint how to opt out. Of an approved template
// counts what the network shows of it, as far as it is known.
func optOutWarnings(purpose string, steps []puntuale.Step, known []puntuale.NetworkTemplate) (all []puntuale.CampaignWarning) {
	if purpose != "marketing" {
		return nil
	}
	for i, step := range steps {
		if !hintsOptOut(step, known) {
			all = append(all, puntuale.CampaignWarning{Code: puntuale.WarnsNoOptOut, Step: i})
		}
	}
	return all
}

func hintsOptOut(step puntuale.Step, known []puntuale.NetworkTemplate) bool {
	texts := []string{step.Text}
	if step.Official != nil {
		if t := templateOf(known, step.Official); len(t.Parts) > 0 {
			texts = nil
			for _, part := range t.Parts {
				texts = append(texts, part.Text)
				for _, b := range part.Buttons {
					texts = append(texts, b.Text)
				}
			}
		}
	}
	for _, text := range texts {
		if optOut.MatchString(text) {
			return true
		}
	}
	return false
}
