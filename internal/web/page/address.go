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

// SignInCookie is the name of a cookie. It names the partner on whose sign-in page somebody signed in, so that the next
// sign-in leads to the same page.
const SignInCookie = "door"

// SignInAddress returns the address of the sign-in page that the person used before, which may be the partner's. At a
// partner's own host name, it is always this partner's page.
func (v *Request) SignInAddress() string {
	if slug := httpkit.SlugIn(v.HTTP, SignInCookie); slug != "" {
		return "/p/" + slug
	}
	return "/login"
}

func (v *Request) KeepSlug(slug string) {
	http.SetCookie(v.Writer, &http.Cookie{Name: httpkit.LooksCookie, Value: slug, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.Caller().Secure}) //nolint:gosec // it is no secret, and behind plain http there is no other way
}

// OwnAddress reports whether an address is a path of this service, so that no link leads to another site. The address
// must have no control characters, because it goes into a header.
func OwnAddress(text string) bool {
	return len(text) > 1 && text[0] == '/' && text[1] != '/' && !strings.Contains(text, `\`) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// InvitationAddress returns the link that a person passes on to the invited user.
func (v *Request) InvitationAddress(i account.Invitation) string {
	return v.SiteAddress() + "/invitation?" + url.Values{"t": {i.Secret}}.Encode()
}

// SiteAddress returns the address of the partner's pages. It is at the partner's confirmed host name, if there is one.
func (v *Request) SiteAddress() string {
	if b := v.Person.Host().Brand; b.Confirmed {
		return "https://" + b.Host
	}
	return cmp.Or(v.Site.Control.Public(), ReadAt(v.HTTP))
}

// ReadAt returns the address of a page as the reader's browser shows it.
func ReadAt(r *http.Request) string {
	if httpkit.CallerOf(r).Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Reachable reports whether an address uses https and may be reachable from the internet. It does not know where a name
// leads.
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
