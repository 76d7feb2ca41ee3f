package view

import (
	"context"

	"puntuale"
)

// mostName is how much of a name is shown, in characters.
const mostName = 60

// CalledName is the name that a message's call gave of its recipient; "" if it gave none, or if the person was erased.
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

// RecipientOf names the recipient of a message: by name, else by number.
func RecipientOf(ctx context.Context, m puntuale.MessageDetail) string {
	return Or(CalledName(m), ShownPhone(ctx, m.Phone))
}
