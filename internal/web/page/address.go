package page

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
	"strings"
	"unicode"
)

// SignInCookie is the name of a cookie with a partner's slug. Somebody signed in on this partner's sign-in page, so the
// next sign-in uses the same page.
const SignInCookie = "door"

// SignInAddress returns the path of the sign-in page that the person used before: a partner's page, or else /login. At
// a partner's own host name, /login shows the partner's page.
func (v *Request) SignInAddress() string {
	if slug := httpkit.SlugIn(v.HTTP, SignInCookie); slug != "" {
		return "/p/" + slug
	}
	return "/login"
}

func (v *Request) KeepSlug(slug string) {
	http.SetCookie(v.Writer, &http.Cookie{Name: httpkit.BrandCookie, Value: slug, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.Caller().Secure}) //nolint:gosec // the slug is no secret, and over plain http a browser refuses a Secure cookie
}

// OwnAddress reports whether an address is a path of this service, so that a link cannot lead to another site. The path
// must have no control characters, because it is written into a header.
func OwnAddress(text string) bool {
	return len(text) > 1 && text[0] == '/' && text[1] != '/' && !strings.Contains(text, `\`) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// InvitationAddress returns the link of an invitation. The person who invited a user sends this link to the user.
func (v *Request) InvitationAddress(i account.Invitation) string {
	return v.SiteAddress() + "/invitation?" + url.Values{"t": {i.Secret}}.Encode()
}

// SiteAddress returns the address of the partner's pages: at the partner's confirmed host name, or else at the
// service's own address.
func (v *Request) SiteAddress() string {
	if b := v.Person.Host().Brand; b.Confirmed {
		return "https://" + b.Host
	}
	return cmp.Or(v.Site.Control.Public(), ReadAt(v.HTTP))
}

// ReadAt returns the scheme and the host of a page, as the reader's browser shows them.
func ReadAt(r *http.Request) string {
	if httpkit.CallerOf(r).Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Reachable reports whether an address uses https and may be reachable from the internet. It does not look up host
// names.
func Reachable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return false
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	return strings.Contains(strings.TrimSuffix(u.Hostname(), "."), ".")
}

// AssistedPath is the path of the phone app. It is also the scope of the app's service worker.
const AssistedPath = "/phone"
