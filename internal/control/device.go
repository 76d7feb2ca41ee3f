package control

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"

	"puntuale"
)

// A browser keeps a sealed cookie that says which users signed in there before. Attempts from such a device have a count
// of their own: nobody elsewhere can use them up, and so keep the owner out. A changed password ends what it says.

// device is one user who signed in at a browser.
type device struct {
	User  puntuale.LoginID `json:"u"`
	Stamp int64            `json:"s"` // the user's at that time
	ID    string           `json:"d"` // random
}

const (
	sealedDevice = "device"
	mostDevices  = 8 // users of one browser
)

// devices opens a browser's cookie; nil where it has none of ours.
func (c *Control) devices(cookie string) (all []device) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || len(sealed) == 0 {
		return nil
	}
	plain, err := c.vault.Open(sealedDevice, "", sealed)
	if err != nil || json.Unmarshal(plain, &all) != nil {
		return nil
	}
	return all
}

// deviceOf finds the device at which one of the users signed in before and has not changed the password since.
func (c *Control) deviceOf(users []puntuale.User, cookie string) (device, bool) {
	for _, d := range c.devices(cookie) {
		if slices.ContainsFunc(users, func(u puntuale.User) bool { return u.ID == d.User && u.Stamp == d.Stamp }) {
			return d, true
		}
	}
	return device{}, false
}

// Device returns the cookie that the person's browser is to keep instead of the one it has, "" for none.
func (p *Person) Device(cookie string) (string, error) {
	all := []device{{p.user.ID, p.user.Stamp, rand.Text()}}
	for _, d := range p.control.devices(cookie) {
		if d.User != p.user.ID && len(all) < mostDevices {
			all = append(all, d)
		}
	}
	plain, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(p.control.vault.Seal(sealedDevice, "", plain)), nil
}
