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

// Transport reaches servers whose addresses callers give, such as gateways. It reaches public ones by https. In the
// networks that the operator allows it uses https or http. It checks the numeric address right before each connection,
// on any port. It keeps no connection, so no request is repeated on a stale one. Many goroutines may use it at once.
func Transport(allowed []netip.Prefix) http.RoundTripper {
	return newTransport(allowed, func(t *http.Transport) { t.DisableKeepAlives = true })
}

const (
	webhookIdle  = 2 * time.Second // less than servers keep an idle connection, so that none closes it while a request leaves
	webhookConns = 512
)

// WebhookTransport reaches receivers of webhooks, as [Transport] reaches gateways. It keeps a connection for two seconds after an answer.
// roots are the authorities that sign the receivers' certificates; nil: the system's.
func WebhookTransport(allowed []netip.Prefix, roots *x509.CertPool) http.RoundTripper {
	return newTransport(allowed, func(t *http.Transport) {
		t.IdleConnTimeout, t.MaxIdleConns, t.MaxIdleConnsPerHost = webhookIdle, webhookConns, 2*puntuale.WebhookAtOnce
		t.DisableCompression = true // a small answer may not become a large one
		if roots != nil {
			t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		}
	})
}

// Forbidden reports whether a request failed because no address of its host may be reached, or the host has none. Callers learn no more:
// else they could ask for names that only our network knows.
func Forbidden(err error) bool {
	var address *addressError
	var name *net.DNSError
	return errors.As(err, &address) || errors.As(err, &name) && name.IsNotFound
}

// Permitted reports whether an address is in one of the networks.
func Permitted(ip netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip.Unmap()) })
}

// LiteralAddress returns the address that a host names without being looked up: a number, or this machine's own name.
func LiteralAddress(host string) (ip netip.Addr, ok bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	ip, err := netip.ParseAddr(host)
	return ip, err == nil
}

var publicOnly = ssrf.New(ssrf.WithAnyPort())

// IsPublic reports whether an address may be reached from anywhere, as [Transport] decides.
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
			Proxy:                  nil, // a proxy would make connections that nobody checks
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

// CloseIdleConnections closes connections that wait for a request.
func (t transport) CloseIdleConnections() {
	for _, part := range []http.RoundTripper{t.secure, t.plain} {
		if closer, ok := part.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}
