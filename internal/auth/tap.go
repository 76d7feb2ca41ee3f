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
// It has at most 64 characters; the button's own payload, if it has one, makes it longer.
func (v *Vault) TapPayload(client puntuale.ClientID, t puntuale.Tap) string {
	named := strconv.FormatInt(int64(t.Message), 36) + "." + strconv.Itoa(t.Button)
	if t.Payload == "" {
		return tapPrefix + named + "." + v.Mark("button of a message", client.String(), named)
	}
	return tapPrefix + named + "." + v.Mark("button of a message", client.String(), named, t.Payload) + "." + t.Payload
}

// ReadTap reads a payload. It returns false if this installation did not make the payload for the client.
func (v *Vault) ReadTap(client puntuale.ClientID, payload string) (t puntuale.Tap, ok bool) {
	parts := strings.SplitN(payload, ".", 5)
	if len(parts) < 4 || parts[0]+"." != tapPrefix {
		return t, false
	}
	id, err := strconv.ParseInt(parts[1], 36, 64)
	if err != nil {
		return t, false
	}
	if t.Button, err = strconv.Atoi(parts[2]); err != nil {
		return puntuale.Tap{}, false
	}
	t.Message = puntuale.MessageID(id)
	if len(parts) == 5 {
		t.Payload = parts[4]
	}
	if subtle.ConstantTimeCompare([]byte(v.TapPayload(client, t)), []byte(payload)) != 1 {
		return puntuale.Tap{}, false
	}
	return t, true
}
