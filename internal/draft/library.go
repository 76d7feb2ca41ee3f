package draft

import (
	_ "embed"
	"strings"
	"sync"

	"puntuale"
)

//go:embed library.txt
var library string

// Entry is a text to begin from, in both languages of the pages.
type Entry struct {
	Group string // appointments, orders, payments or reviews
	Name  string
	Texts map[string]string // by language: it, en
}

// Library returns the texts to begin from. All are about an event of the person, so Meta should take them for utility.
var Library = sync.OnceValue(func() (all []Entry) {
	group := ""
	var lines []string
	for line := range strings.Lines(library) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case strings.HasPrefix(line, "#"):
			group = line[1:]
		default:
			if lines = append(lines, line); len(lines) == 3 {
				all = append(all, Entry{group, lines[0], map[string]string{"it": lines[1], "en": lines[2]}})
				lines = nil
			}
		}
	}
	return all
})

// examples are values for the fields of the library, in Italian and English.
var examples = map[string][2]string{
	"nome": {"Ada", "Ada"}, "data": {"venerdì 4 dicembre", "Friday 4 December"}, "ora": {"10:30", "10:30"}, "numero": {"1724", "1724"}, "importo": {"45,00 €", "€45.00"},
	"luogo": {"via Po 1, Torino", "via Po 1, Turin"}, "servizio": {"una visita di controllo", "a check-up"}, "minuti": {"15", "15"}, "codice": {"TR123456", "TR123456"},
	"documenti": {"tessera sanitaria e referti", "health card and reports"}, "istruzioni": {"resta a digiuno da 8 ore", "do not eat for 8 hours"},
}

// Draft returns the entry as a draft in a language, with examples for its fields. For another language than those of the
// pages, the text is the English one.
func (e Entry) Draft(language string) puntuale.TemplateDraft {
	own, at := "en", 1
	if strings.HasPrefix(language, "it") {
		own, at = "it", 0
	}
	d := puntuale.TemplateDraft{Name: e.Name, Language: language, Category: puntuale.CategoryUtility, Text: e.Texts[own], Examples: map[string]string{}}
	for _, name := range d.Placeholders() {
		d.Examples[name] = examples[name][at]
	}
	return d
}
