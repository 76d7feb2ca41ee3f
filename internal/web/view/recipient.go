package view

import (
	"context"
	"encoding/json"
	"strings"

	"puntuale"
)

// How much of a call is looked through for a name, in bytes, and how much of a name is shown, in characters.
const (
	mostCall = 16 << 10
	mostName = 60
)

// CalledName is the name that a message's call gave of its recipient, in its field nome or name; "" where it gave none, and
// of who was erased.
func CalledName(m puntuale.MessageDetail) string {
	if m.Blanked || len(m.Request) == 0 || len(m.Request) > mostCall {
		return ""
	}
	var call map[string]json.RawMessage
	if json.Unmarshal(m.Request, &call) != nil { // what no page can read has no name for it
		return ""
	}
	for _, field := range []string{"nome", "name"} {
		var text string
		if json.Unmarshal(call[field], &text) != nil {
			continue
		}
		if text = strings.Join(strings.Fields(text), " "); text == "" {
			continue
		}
		if letters := []rune(text); len(letters) > mostName {
			text = string(letters[:mostName-1]) + "…"
		}
		return text
	}
	return ""
}

// recipientOf is who a message is for, in a word: a name, else the number.
func recipientOf(ctx context.Context, m puntuale.MessageDetail) string {
	return or(CalledName(m), shownPhone(ctx, m.Phone))
}
