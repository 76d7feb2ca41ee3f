package view

import (
	"regexp"
	"strings"
)

// dateWords matches what a text says about a day or a time, in Italian and English. Go's \b knows only letters without
// accents, so the words end before a character that is no letter.
var dateWords = regexp.MustCompile(`(?i)(?:^|[^\p{L}\d])(` +
	`(?:(?:luned|marted|mercoled|gioved|venerd)[iì]['’]?|sabato|domenica|monday|tuesday|wednesday|thursday|friday|saturday|sunday)(?:,? \d{1,2}(?: \p{L}{3,9})?)?` +
	`|\d{1,2}°? (?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre|january|february|march|april|may|june|july|august|september|october|november|december)(?: \d{4})?` +
	`|\d{4}-\d{2}-\d{2}|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{1,2}/\d{1,2}|\d{1,2}[:.]\d{2}` +
	`|oggi|stamattina|stasera|stanotte|domani|dopodomani|ieri|today|tonight|tomorrow|yesterday` +
	`)(?:$|[^\p{L}\d])`)

// maxDateWords is how many of the words a page quotes.
const maxDateWords = 3

// DateWords returns what a text says about days and times, such as "venerdì 27 novembre". A message that moves keeps its
// text, so these words may be wrong afterwards.
func DateWords(text string) (all []string) {
	for len(all) < maxDateWords {
		at := dateWords.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		all = append(all, strings.TrimSpace(text[at[2]:at[3]]))
		text = text[at[3]:]
	}
	return all
}
