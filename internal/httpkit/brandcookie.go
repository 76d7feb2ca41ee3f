package httpkit

import (
	"net/http"
	"regexp"
)

// LooksCookie names, by its slug, the partner whose pages a browser showed last. Pages at an address that is no partner's
// have its looks, too: the plain sign-in page and /docs. It opens nothing: everybody may see a partner's looks.
const LooksCookie = "looks"

var slugShape = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)

// SlugIn returns the partner's slug that a cookie holds; "" where it holds none.
func SlugIn(r *http.Request, cookie string) string {
	c, err := r.Cookie(cookie)
	if err != nil || !slugShape.MatchString(c.Value) {
		return ""
	}
	return c.Value
}
