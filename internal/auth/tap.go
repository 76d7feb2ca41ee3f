package auth

import (
	"crypto/subtle"
	"strconv"
	"strings"

	"puntuale"
)

// tapPrefix begins the payload of a button. A payload of somebody else's template rarely does.
const tapPrefix = "p1."

// TapPayload returns the payload of one button of a message. Nobody can guess the payload of another message or button.
// It has at most 64 characters.
func (v *Vault) TapPayload(client puntuale.ClientID, t puntuale.Tap) string {
	named := strconv.FormatInt(int64(t.Message), 36) + "." + strconv.Itoa(t.Button)
	return tapPrefix + named + "." + v.Mark("button of a message", client.String(), named)
}

// ReadTap reads a payload. It returns false if this installation did not make the payload for the client.
func (v *Vault) ReadTap(client puntuale.ClientID, payload string) (t puntuale.Tap, ok bool) {
	named, ours := strings.CutPrefix(payload, tapPrefix)
	message, rest, _ := strings.Cut(named, ".")
	button, _, _ := strings.Cut(rest, ".")
	id, err := strconv.ParseInt(message, 36, 64)
	if !ours || err != nil {
		return t, false
	}
	if t.Button, err = strconv.Atoi(button); err != nil {
		return puntuale.Tap{}, false
	}
	t.Message = puntuale.MessageID(id)
	if subtle.ConstantTimeCompare([]byte(v.TapPayload(client, t)), []byte(payload)) != 1 {
		return puntuale.Tap{}, false
	}
	return t, true
}
