package person

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"puntuale"
)

// termKind is the kind of a term. The numbers are stored.
type termKind int64

const (
	wordTerm termKind = 1 // a word of the contact's name
	tagTerm  termKind = 2
)

// term is a word or a tag by which a contact can be found.
type term struct {
	kind   termKind
	text   string
	person puntuale.ContactID
}

func (t term) compare(u term) int {
	return cmp.Or(cmp.Compare(t.kind, u.kind), cmp.Compare(t.text, u.text), cmp.Compare(t.person, u.person))
}

// maxWord is how many characters of a word are stored. It is small because cursors contain words.
const maxWord = 30

// termsOf returns the terms of a contact, each only once.
func termsOf(c puntuale.Contact) []term {
	var all []term
	for _, word := range words(c.Name) {
		all = append(all, term{wordTerm, word, c.ID})
	}
	for _, tag := range c.Tags {
		all = append(all, term{tagTerm, tag, c.ID})
	}
	return all
}

// words returns the different words of a text, in lower case and without accents. These words are stored in rows. If
// this rule changes, all rows must be written again. Package keyword explains how its rule differs.
func words(text string) []string {
	var all []string
	word := make([]rune, 0, maxWord)
	end := func() {
		if len(word) > 0 {
			all = append(all, string(word))
			word = word[:0]
		}
	}
	for _, r := range norm.NFKD.String(strings.ToLower(text)) {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case len(word) < maxWord:
			word = append(word, r)
		}
	}
	end()
	slices.Sort(all)
	return slices.Compact(all)
}

// prefixEnd returns a text that is larger than every text with this prefix, if the texts consist of letters and digits.
func prefixEnd(prefix string) string { return prefix + "\U0010FFFF" }
