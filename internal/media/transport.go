package media

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"puntuale"
)

// Transport returns a transport for servers whose addresses come from callers, such as gateways. It reaches public
// addresses by https. In networks that the operator allows, it also accepts http. It checks the numeric address
// immediately before each connection, on any port. It reuses no connection, so no request is repeated on a stale
// connection. The transport is safe for concurrent use.
func Transport(allowed []netip.Prefix) http.RoundTripper {
	return newTransport(allowed, func(t *http.Transport) { t.DisableKeepAlives = true })
}

const (
	webhookIdle  = 2 * time.Second // less than the time for which servers keep idle connections, so that no server closes one while a request is sent
	webhookConns = 512
)

// WebhookTransport returns a transport for the receivers of webhooks, with the checks of [Transport]. It keeps a
// connection open for two seconds after an answer. The argument roots contains the authorities that sign the receivers'
// certificates; nil: the system's.
func WebhookTransport(allowed []netip.Prefix, roots *x509.CertPool) http.RoundTripper {
	return newTransport(allowed, func(t *http.Transport) {
		t.IdleConnTimeout, t.MaxIdleConns, t.MaxIdleConnsPerHost = webhookIdle, webhookConns, 2*puntuale.WebhookAtOnce
		t.DisableCompression = true // a small answer must not become a large one
		if roots != nil {
			t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		}
	})
}

// Forbidden reports whether a request failed because no address of its host is allowed, or because the host has no
// address. Callers must not be able to distinguish the two cases. If they could, they could find out which names exist
// inside our network.
func Forbidden(err error) bool {
	var address *addressError
	var name *net.DNSError
	return errors.As(err, &address) || errors.As(err, &name) && name.IsNotFound
}

// Permitted reports whether an address is in one of the networks.
func Permitted(ip netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}

// LiteralAddress returns the address of a host that needs no DNS query: a numeric address, or this machine's own name.
func LiteralAddress(host string) (ip netip.Addr, ok bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	ip, err := netip.ParseAddr(host)
	return ip, err == nil
}

var publicOnly = ssrf.New(ssrf.WithAnyPort())

// IsPublic reports whether an address is public, by the rules of [Transport].
func IsPublic(ip netip.Addr) bool {
	network := "tcp4"
	if ip.Is6() {
		network = "tcp6"
	}
	return publicOnly.Safe(network, netip.AddrPortFrom(ip, 443).String(), nil) == nil
}

func newTransport(allowed []netip.Prefix, set func(*http.Transport)) http.RoundTripper {
	exempt := func(to netip.AddrPort) bool { return Permitted(to.Addr(), allowed) }
	through := func(d *dialer) *http.Transport {
		t := &http.Transport{
			Proxy:                  nil, // no proxy, because a proxy would make connections without a check
			DialContext:            d.dial,
			TLSHandshakeTimeout:    transportConnect,
			MaxResponseHeaderBytes: 64 << 10,
		}
		set(t)
		return t
	}
	timeout := net.Dialer{Timeout: transportConnect}
	return transport{
		secure: through(&dialer{guardian: ssrf.New(ssrf.WithAnyPort()), exempt: exempt, net: timeout}),
		plain:  through(&dialer{guardian: ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(allV4), ssrf.WithDeniedV6Prefixes(allV6)), exempt: exempt, net: timeout}),
	}
}

const transportConnect = 10 * time.Second

var allV4, allV6 = netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")

type transport struct{ secure, plain http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Scheme {
	case "https":
		return t.secure.RoundTrip(r)
	case "http":
		return t.plain.RoundTrip(r)
	}
	return nil, errors.New("only http and https are spoken")
}

// CloseIdleConnections closes idle connections.
func (t transport) CloseIdleConnections() {
	for _, part := range []http.RoundTripper{t.secure, t.plain} {
		if closer, ok := part.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}
