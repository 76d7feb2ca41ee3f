package web

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"strings"
	"unicode"
)

// doorCookie names the partner whose sign-in page somebody came in by, so that they are led back to that one.
const doorCookie = "door"

// SignInAddress is the address of the sign-in page that somebody knows: their partner's, where they came in by it. At a partner's
// own host name it is its page anyway.
func (v *Request) SignInAddress() string {
	if slug := httpkit.SlugIn(v.HTTP, doorCookie); slug != "" {
		return "/p/" + slug
	}
	return "/login"
}

func (v *Request) KeepSlug(slug string) {
	http.SetCookie(v.Writer, &http.Cookie{Name: httpkit.LooksCookie, Value: slug, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: v.caller().Secure}) //nolint:gosec // it is no secret, and behind plain http there is no other way
}

// ownAddress reports whether an address is a path of ours, so that nobody is led elsewhere. It has no control characters:
// it goes into a header.
func ownAddress(text string) bool {
	return len(text) > 1 && text[0] == '/' && text[1] != '/' && !strings.Contains(text, `\`) && strings.IndexFunc(text, unicode.IsControl) < 0
}

// invitationAddress is the link that is handed on.
func (v *Request) invitationAddress(i control.Invitation) string {
	return v.SiteAddress() + "/invitation?" + url.Values{"t": {i.Secret}}.Encode()
}

// SiteAddress is the address of the partner's pages: at its confirmed host name, where it has one.
func (v *Request) SiteAddress() string {
	if b := v.person.Host().Brand; b.Confirmed {
		return "https://" + b.Host
	}
	return cmp.Or(v.site.control.Public(), readAt(v.HTTP))
}

// readAt is the address at which a page is read: that of the reader's browser.
func readAt(r *http.Request) string {
	if httpkit.CallerOf(r).Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// reachable reports whether an address is one that somebody on the internet may reach, and is encrypted. What is behind a
// name nobody can tell from here.
func reachable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return false
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ip.IsGlobalUnicast() && !ip.IsPrivate()
	}
	return strings.Contains(strings.TrimSuffix(u.Hostname(), "."), ".")
}

// assistedPath is where the app is. It is the scope of its service worker, too.
const assistedPath = "/phone"
