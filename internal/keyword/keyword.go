// Package keyword compares messages with keywords such as STOP. It ignores case, accents and punctuation.
//
// Two searches of the store also ignore case and accents, but intentionally differ from Fold. The search of messages
// does not ignore punctuation, because people search for "10:30". The search of contacts splits a name at punctuation,
// so that Maria finds Anna-Maria. Fold removes punctuation without splitting the word, so that S.T.O.P. equals STOP.
package keyword

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// most is how many bytes Fold reads. Every keyword is shorter.
const most = 4096

// Fold returns the text in lower case, without accents, punctuation and symbols, and with single spaces between words.
// Texts that differ only in these become equal. Fold is safe for concurrent use.
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
		if 'A' <= r && r <= 'Z' { // NFKD may write a symbol as capital letters, such as TM for a trade mark
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

// ascii reports whether the text contains only ASCII characters. If so, only the case of letters must be ignored.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Is reports whether the whole text is one of the words. It returns false for a longer text that contains a word.
func Is(text string, words []string) bool { return In(Whole(text), words) }

// Whole does the same as Fold, for a text that is compared as a whole. It returns "" if the text is longer than any keyword.
func Whole(text string) string {
	if len(text) > most {
		return ""
	}
	return Fold(text)
}

// In does the same as Is, for a text that Whole returned.
func In(whole string, words []string) bool {
	return whole != "" && slices.ContainsFunc(words, func(w string) bool { return Fold(w) == whole })
}
