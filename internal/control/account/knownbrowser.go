package account

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"

	"puntuale"
)

// A browser stores a sealed cookie that lists the users who signed in there before. Attempts from this browser are
// counted separately. Therefore, attempts from elsewhere cannot use up this browser's attempts, which would lock the
// user out. When a user changes the password, the user's entry in the cookie becomes invalid.

// visitor is one entry of the cookie: a user who signed in at the browser.
type visitor struct {
	User  puntuale.UserID `json:"u"`
	Stamp int64           `json:"s"` // [puntuale.User.Stamp] at the sign-in; if the user's stamp has changed since then, the entry is invalid
	ID    string          `json:"d"` // a random name of this entry
}

const maxVisitors = 8 // how many users one browser's cookie may contain

// visitors decrypts a browser's cookie. It returns nil if there is no cookie, or this installation did not seal it.
func (c *Accounts) visitors(cookie string) (all []visitor) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || len(sealed) == 0 {
		return nil
	}
	plain, err := c.vault.Open(puntuale.SealedBrowser, "", sealed)
	if err != nil || json.Unmarshal(plain, &all) != nil {
		return nil
	}
	return all
}

// visitorOf returns one of the users who signed in at the browser before, and did not change the password after that.
func (c *Accounts) visitorOf(users []puntuale.User, cookie string) (visitor, bool) {
	for _, d := range c.visitors(cookie) {
		if slices.ContainsFunc(users, func(u puntuale.User) bool { return u.ID == d.User && u.Stamp == d.Stamp }) {
			return d, true
		}
	}
	return visitor{}, false
}

// Browser returns the new cookie for the person's browser. cookie is the current cookie, or "" if the browser has none.
func (p *Person) Browser(cookie string) (string, error) {
	all := []visitor{{p.user.ID, p.user.Stamp, rand.Text()}}
	for _, d := range p.accounts.visitors(cookie) {
		if d.User != p.user.ID && len(all) < maxVisitors {
			all = append(all, d)
		}
	}
	plain, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(p.accounts.vault.Seal(puntuale.SealedBrowser, "", plain)), nil
}
