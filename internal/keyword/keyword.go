// Package keyword compares texts of people with words. It ignores case, accents and punctuation.
package keyword

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// most bounds what [Fold] reads, in bytes: no word is longer.
const most = 4096

// Fold returns a text without accents, punctuation and signs, in folded case, with single spaces between its words.
// Texts that differ only in these become equal. Many goroutines may call it at once.
func Fold(text string) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	if !ascii(text) {
		text = norm.NFKD.String(cases.Fold().String(text))
	}
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		if 'A' <= r && r <= 'Z' { // of ASCII, and of signs that stand for letters
			r += 'a' - 'A'
		}
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

// ascii reports whether folding is only about the case of letters.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Is reports whether the whole text is one of the words. A longer text that holds one is not.
func Is(text string, words []string) bool { return In(Whole(text), words) }

// Whole is Fold for a text that may be a word as a whole. It is empty if the text is longer than any word.
func Whole(text string) string {
	if len(text) > most {
		return ""
	}
	return Fold(text)
}

// In is Is for what Whole returned.
func In(whole string, words []string) bool {
	return whole != "" && slices.ContainsFunc(words, func(w string) bool { return Fold(w) == whole })
}
