package language

import (
	"strings"

	"puntuale"
	"puntuale/internal/catalogue"
)

// Fault says in the language what is wrong. It begins with a capital.
func (l *Language) Fault(r puntuale.Reason) string { return capital(l.Reason(r)) }

// Reason says a reason in the language.
func (l *Language) Reason(r puntuale.Reason) string {
	if l == English {
		return catalogue.English.Say(r)
	}
	return catalogue.Italian.Say(r)
}

func capital(text string) string {
	for i, r := range text {
		return strings.ToUpper(text[:i+len(string(r))]) + text[i+len(string(r)):]
	}
	return text
}
