package view

import (
	"context"

	"puntuale"
)

// mostName is how much of a name is shown, in characters.
const mostName = 60

// CalledName returns the name that a message's call gave for the recipient. It returns "" if the call gave none, or if
// the person was erased.
func CalledName(m puntuale.MessageDetail) string {
	if m.Blanked {
		return ""
	}
	name := puntuale.RecipientName(m.Origin, m.Request)
	if letters := []rune(name); len(letters) > mostName {
		return string(letters[:mostName-1]) + "…"
	}
	return name
}

// RecipientOf returns the recipient's name, or the number if there is no name.
func RecipientOf(ctx context.Context, m puntuale.MessageDetail) string {
	return Or(CalledName(m), ShownPhone(ctx, m.Phone))
}
