package view

import (
	"context"

	"puntuale"
)

// mostName is how much of a name is shown, in characters.
const mostName = 60

// CalledName is the name that a message's call gave of its recipient; "" where it gave none, and of who was erased.
func CalledName(m puntuale.MessageDetail) string {
	if m.Blanked {
		return ""
	}
	name := puntuale.RecipientName(m.Request)
	if letters := []rune(name); len(letters) > mostName {
		return string(letters[:mostName-1]) + "…"
	}
	return name
}

// RecipientOf is who a message is for, in a word: a name, else the number.
func RecipientOf(ctx context.Context, m puntuale.MessageDetail) string {
	return Or(CalledName(m), ShownPhone(ctx, m.Phone))
}
