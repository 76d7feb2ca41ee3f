// Package link answers calls of tracked links. It needs no sign-in, and sets no cookies.
package link

import (
	"fmt"
	"net/http"
	"strings"

	"puntuale"
	"puntuale/internal/web/page"
)

// Routes are the routes of the package.
var Routes = []page.Route{page.Get(puntuale.LinkPath+"{code}", page.Anyone, 0, follow)}

func follow(v *page.Request) error {
	h := v.Writer.Header()
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	address, err := v.Site.Links.Follow(v.Ctx(), v.Path("code"), v.HTTP.UserAgent(), v.HTTP.Method == http.MethodGet)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		if at := v.DressAsHost(); at != nil {
			return at
		}
		return err
	}
	if err != nil {
		return err
	}
	v.Answered = true
	h.Set("Location", ascii(address))
	h.Set("Content-Length", "0")
	v.Writer.WriteHeader(http.StatusFound)
	return nil
}

// ascii writes other bytes than ASCII as %XX, because a header cannot have them. It leaves everything else as it is.
func ascii(address string) string {
	var b strings.Builder
	for _, c := range []byte(address) {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
