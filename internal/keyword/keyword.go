// Package keyword compares what people write with words, whatever the case of letters, accents and punctuation.
//
// Two searches of the store drop case and accents, too, and differ from Fold on purpose. A search of messages keeps
// punctuation: people look for "10:30". The words of a contact end at punctuation, and are stored: Anna-Maria is found by
// Maria. Here S.T.O.P. is STOP, so punctuation disappears and joins what stands beside it.
package keyword

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// most bounds what [Fold] reads, in bytes: no word is longer.
const most = 4096

// Fold returns a text without accents, punctuation and signs, in folded case, with single spaces between its words. Texts
// that differ in nothing else are the same afterwards. It may be called by many goroutines at once.
func Fold(text string) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	text = cases.Fold().String(text)
	var b strings.Builder
	space := false
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		case unicode.IsSpace(r):
			space = true
		}
	}
	return b.String()
}

// Is reports whether the whole text is one of the words. A longer text that holds one is not.
func Is(text string, words []string) bool {
	if len(text) > most {
		return false
	}
	folded := Fold(text)
	return folded != "" && slices.ContainsFunc(words, func(w string) bool { return Fold(w) == folded })
}
