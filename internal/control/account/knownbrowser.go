package account

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"

	"puntuale"
)

// A browser keeps a sealed cookie that says which users signed in there before. Attempts from this browser are counted
// separately. So attempts from other places cannot use up the browser's attempts and keep the user out. The cookie is
// not valid any more after the user changes the password.

// visitor is one user who signed in at a browser.
type visitor struct {
	User  puntuale.LoginID `json:"u"`
	Stamp int64            `json:"s"` // the user's stamp at that time
	ID    string           `json:"d"` // random; names this entry
}

const (
	sealedBrowser = "device"
	mostVisitors  = 8 // users that one browser's cookie may name
)

// visitors opens a browser's cookie. It returns nil if the cookie is missing or not sealed by us.
func (c *Accounts) visitors(cookie string) (all []visitor) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || len(sealed) == 0 {
		return nil
	}
	plain, err := c.vault.Open(sealedBrowser, "", sealed)
	if err != nil || json.Unmarshal(plain, &all) != nil {
		return nil
	}
	return all
}

// visitorOf finds one of the users who signed in at the browser before and has not changed the password since.
func (c *Accounts) visitorOf(users []puntuale.User, cookie string) (visitor, bool) {
	for _, d := range c.visitors(cookie) {
		if slices.ContainsFunc(users, func(u puntuale.User) bool { return u.ID == d.User && u.Stamp == d.Stamp }) {
			return d, true
		}
	}
	return visitor{}, false
}

// Browser returns the cookie that replaces the one in the person's browser. cookie is the present one, or "" if there
// is none.
func (p *Person) Browser(cookie string) (string, error) {
	all := []visitor{{p.user.ID, p.user.Stamp, rand.Text()}}
	for _, d := range p.accounts.visitors(cookie) {
		if d.User != p.user.ID && len(all) < mostVisitors {
			all = append(all, d)
		}
	}
	plain, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(p.accounts.vault.Seal(sealedBrowser, "", plain)), nil
}
