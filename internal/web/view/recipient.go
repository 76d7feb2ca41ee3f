package view

import (
	"context"

	"puntuale"
)

// maxName is the largest number of characters of a shown name.
const maxName = 60

// CalledName returns the name of a message's recipient: the name that the client knows, or the name in the call that
// created the message. It returns "" if neither has a name, or if the person was erased.
func CalledName(ctx context.Context, m puntuale.MessageDetail) string {
	if m.Blanked {
		return ""
	}
	return short(Or(FrameOf(ctx).Names[m.Phone], puntuale.RecipientName(m.Origin, m.Request)))
}

// NameOf returns the name by which the client knows a person, or "".
func NameOf(ctx context.Context, phone string) string { return short(FrameOf(ctx).Names[phone]) }

func short(name string) string {
	if letters := []rune(name); len(letters) > maxName {
		return string(letters[:maxName-1]) + "…"
	}
	return name
}

// RecipientOf returns the recipient's name, or the phone number if the name is not known.
func RecipientOf(ctx context.Context, m puntuale.MessageDetail) string {
	return Or(CalledName(ctx, m), ShownPhone(ctx, m.Phone))
}
