package media

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"
)

// Transport reaches servers whose addresses callers give, such as gateways. It reaches public ones by https. In the
// networks that the operator allows it uses https or http. It checks the numeric address right before each connection,
// on any port. It keeps no connection, so no request is repeated on a stale one. Many goroutines may use it at once.
func Transport(allowed []netip.Prefix) http.RoundTripper {
	exempt := func(to netip.AddrPort) bool {
		for _, p := range allowed {
			if p.Contains(to.Addr().Unmap()) {
				return true
			}
		}
		return false
	}
	through := func(d *dialer) *http.Transport {
		return &http.Transport{
			Proxy:                  nil, // a proxy would make connections that nobody checks
			DialContext:            d.dial,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    transportConnect,
			MaxResponseHeaderBytes: 64 << 10,
		}
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
