package httpkit

import (
	"net/http"
	"regexp"
)

// BrandCookie is the name of a cookie that contains a partner's slug: the partner whose pages the browser showed last.
// The plain sign-in page and /docs belong to no partner, so they show the brand of the partner in the cookie. The
// cookie gives no access, because everybody may see a partner's brand.
const BrandCookie = "looks"

var slugShape = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)

// SlugIn returns the partner's slug in a cookie, or "" if there is no cookie with a valid slug.
func SlugIn(r *http.Request, cookie string) string {
	c, err := r.Cookie(cookie)
	if err != nil || !slugShape.MatchString(c.Value) {
		return ""
	}
	return c.Value
}
