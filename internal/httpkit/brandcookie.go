package httpkit

import (
	"net/http"
	"regexp"
)

// LooksCookie has the slug of the partner whose pages a browser showed last. The plain sign-in page and /docs, which belong to no partner,
// then show this partner's brand. The cookie gives no access: everybody may see a partner's brand.
const LooksCookie = "looks"

var slugShape = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)

// SlugIn returns the partner's slug that a cookie holds; "" if it holds none.
func SlugIn(r *http.Request, cookie string) string {
	c, err := r.Cookie(cookie)
	if err != nil || !slugShape.MatchString(c.Value) {
		return ""
	}
	return c.Value
}
