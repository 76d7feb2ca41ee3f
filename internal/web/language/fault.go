package language

import (
	"strings"

	"puntuale"
	"puntuale/internal/catalogue"
)

// Fault returns the sentence of a fault in this language. The sentence begins with a capital letter.
func (l *Language) Fault(r puntuale.Reason) string { return capital(l.Reason(r)) }

// Reason returns the sentence of a reason in this language.
func (l *Language) Reason(r puntuale.Reason) string {
	if l == English {
		return catalogue.English.Sentence(r)
	}
	return catalogue.Italian.Sentence(r)
}

func capital(text string) string {
	for i, r := range text {
		return strings.ToUpper(text[:i+len(string(r))]) + text[i+len(string(r)):]
	}
	return text
}
