package signin

import (
	"encoding/base32"
	"strings"
)

// secretText formats a secret for typing it into an app, in groups of four characters.
func secretText(secret []byte) string {
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
	var groups []string
	for len(text) > 4 {
		groups, text = append(groups, text[:4]), text[4:]
	}
	return strings.Join(append(groups, text), " ")
}

func join(lines []string) string { return strings.Join(lines, "\n") }
