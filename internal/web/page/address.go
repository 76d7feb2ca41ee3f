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

// SignInCookie names the partner on whose sign-in page somebody signed in, so that the next sign-in leads to the same page.
const SignInCookie = "door"

// SignInAddress is the address of the sign-in page that a person used before: perhaps their partner's. At a partner's own host name, it is
// always this partner's page.
func (v *Request) SignInAddress() string {
	if slug := httpkit.SlugIn(v.HTTP, SignInCookie); slug != "" {
		return "/p/" + slug
	}
	return "/login"
}

func (v *Request) KeepSlug(slug string) {
	http.SetCookie(v.Writer, &http.Cookie{Name: httpkit.LooksCookie, Value: slug, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.Caller().Secure}) //nolint:gosec // it is no secret, and behind plain http there is no other way
}

// OwnAddress reports whether an address is a path of ours, so that no link leads to another site. It must have no control characters,
// because it goes into a header.
func OwnAddress(text string) bool {
	return len(text) > 1 && text[0] == '/' && text[1] != '/' && !strings.Contains(text, `\`) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// InvitationAddress is the link that a person passes on.
func (v *Request) InvitationAddress(i account.Invitation) string {
	return v.SiteAddress() + "/invitation?" + url.Values{"t": {i.Secret}}.Encode()
}

// SiteAddress is the address of the partner's pages: at its confirmed host name, if it has one.
func (v *Request) SiteAddress() string {
	if b := v.Person.Host().Brand; b.Confirmed {
		return "https://" + b.Host
	}
	return cmp.Or(v.Site.Control.Public(), ReadAt(v.HTTP))
}

// ReadAt is the address that the reader's browser shows for a page.
func ReadAt(r *http.Request) string {
	if httpkit.CallerOf(r).Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Reachable reports whether an address can be reached from the internet, and is encrypted. It cannot know what is behind a name.
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

// AssistedPath is where the app is. It is the scope of its service worker, too.
const AssistedPath = "/phone"
