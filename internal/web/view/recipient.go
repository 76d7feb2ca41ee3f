package view

import (
	"context"

	"puntuale"
)

// maxName is the largest number of characters of a shown name.
const maxName = 60

// CalledName returns the recipient's name from the call that created the message. It returns "" if the call contained
// no name, or if the person was erased.
func CalledName(m puntuale.MessageDetail) string {
	if m.Blanked {
		return ""
	}
	name := puntuale.RecipientName(m.Origin, m.Request)
	if letters := []rune(name); len(letters) > maxName {
		return string(letters[:maxName-1]) + "…"
	}
	return name
}

// RecipientOf returns the recipient's name, or the phone number if the name is not known.
func RecipientOf(ctx context.Context, m puntuale.MessageDetail) string {
	return Or(CalledName(m), ShownPhone(ctx, m.Phone))
}
