package httpkit

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"puntuale/internal/httpkit/admission"
)

// Caller says where a request comes from.
type Caller struct {
	Address netip.Addr // the caller's own address, not a proxy's; zero: not known
	Secure  bool       // the caller uses https, to this server or to a trusted proxy
	Local   bool       // a program on this machine made the request, and no proxy forwarded it
}

// Proxies are the networks from which the headers X-Forwarded-For and X-Forwarded-Proto are trusted. Every machine in
// these networks can claim any address for its caller.
type Proxies []netip.Prefix

// Special words for [ParseProxies]. Each word stands for several networks.
const (
	loopbackWord = "loopback"
	privateWord  = "private"
)

var (
	loopbackNetworks = networks("127.0.0.0/8", "::1/128")
	privateNetworks  = networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")

	// DefaultProxies are this machine and private networks.
	DefaultProxies = slices.Concat(loopbackNetworks, privateNetworks)
)

func networks(all ...string) (p Proxies) {
	for _, text := range all {
		p = append(p, netip.MustParsePrefix(text))
	}
	return p
}

// ParseProxies parses networks such as 203.0.113.0/24, addresses, and the words loopback and private. The result is
// never nil. An empty list gives Proxies that trust no machine.
func ParseProxies(words []string) (Proxies, error) {
	p := Proxies{}
	for _, word := range words {
		switch word {
		case loopbackWord:
			p = append(p, loopbackNetworks...)
			continue
		case privateWord:
			p = append(p, privateNetworks...)
			continue
		}
		if a, err := netip.ParseAddr(word); err == nil && a.Zone() == "" {
			p = append(p, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		n, err := netip.ParsePrefix(word)
		if err != nil || n.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not a network such as 203.0.113.0/24, an address, %s or %s", word, loopbackWord, privateWord)
		}
		p = append(p, n.Masked())
	}
	return p, nil
}

// CallerOf returns where a request comes from. It trusts the Proxies in the [Config] of [Wrap], or [DefaultProxies] if
// Wrap does not handle the request.
func CallerOf(r *http.Request) Caller {
	if t, ok := r.Context().Value(recordKey{}).(*requestRecord); ok {
		return t.proxies.Caller(r)
	}
	return DefaultProxies.Caller(r)
}

// UnknownCaller returns the CallerKey of a request whose API key was not looked up yet. UnknownCaller makes this
// CallerKey from the caller's address.
func UnknownCaller(r *http.Request) admission.CallerKey {
	return admission.AddressKey(CallerOf(r).Address)
}

// Caller returns where a request comes from. Each proxy appends the address that it saw to X-Forwarded-For, so Caller
// reads the list from its end. Counted from the end, the first address outside p is the caller's. The caller may have
// invented all addresses before this one.
func (p Proxies) Caller(r *http.Request) Caller {
	c := Caller{Secure: r.TLS != nil}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return c
	}
	c.Address = plain(peer.Addr())
	forwarded := r.Header.Values("X-Forwarded-For")
	c.Local = c.Address.IsLoopback() && len(forwarded) == 0
	if !p.trust(c.Address) {
		return c
	}
	// If the header has several values, the first value comes from the outermost proxy.
	scheme, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	c.Secure = c.Secure || strings.EqualFold(strings.TrimSpace(scheme), "https")
	for _, line := range slices.Backward(forwarded) {
		for more := true; more; {
			var hop string
			if line, hop, more = cutLast(line); !c.follow(p, hop) {
				return c
			}
		}
	}
	return c
}

// follow sets the caller's address to hop, an address that a trusted proxy saw. It reports whether hop is itself a
// trusted proxy. If so, the caller is behind this proxy, and Caller must also follow the previous address in the list.
func (c *Caller) follow(p Proxies, hop string) bool {
	a, ok := parseHop(hop)
	if !ok {
		return false
	}
	c.Address = a
	return p.trust(a)
}

// cutLast splits a list at its last comma.
func cutLast(line string) (rest, last string, more bool) {
	i := strings.LastIndexByte(line, ',')
	if i < 0 {
		return "", line, false
	}
	return line[:i], line[i+1:], true
}

// parseHop parses an address, with or without a port after it.
func parseHop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return plain(a), true
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return plain(a.Addr()), true
	}
	return netip.Addr{}, false
}

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func (p Proxies) trust(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}
