package person

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"puntuale"
)

// termKind is the kind of a term. Stores contain the number.
type termKind int64

const (
	wordTerm termKind = 1 // a word of the name
	tagTerm  termKind = 2
)

// term is a word or tag by which a contact is found.
type term struct {
	kind   termKind
	text   string
	person puntuale.ContactID
}

func (t term) compare(u term) int {
	return cmp.Or(cmp.Compare(t.kind, u.kind), cmp.Compare(t.text, u.text), cmp.Compare(t.person, u.person))
}

// maxWord is how many characters of a word are kept. It is bounded because a cursor contains a word.
const maxWord = 30

// termsOf returns the terms of a contact, each once.
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

// words returns the different words of a text, in small letters and without accents.
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

// after sorts after every text that begins with the prefix: no text of letters and digits has this character.
func after(prefix string) string { return prefix + "\U0010FFFF" }
