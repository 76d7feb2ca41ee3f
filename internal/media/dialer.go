package media

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"puntuale"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"code.dny.dev/ssrf"
)

// addressError means that a host has addresses, but none of them is allowed.
type addressError struct{ err error }

func (e *addressError) Error() string { return "no address that may be reached: " + e.err.Error() }
func (e *addressError) Unwrap() error { return e.err }

// dialer connects only to public addresses. The guardian is from the library ssrf. It refuses IANA's special-purpose
// ranges, and every IPv6 address outside 2000::/3. This excludes NAT64 (64:ff9b::/96), v4-mapped and v4-compatible
// addresses, unique local and link-local addresses, multicast, and every address with a zone.
type dialer struct {
	guardian *ssrf.Guardian
	exempt   func(netip.AddrPort) bool
	net      net.Dialer
}

func newDialer(cfg Config) *dialer {
	return &dialer{
		guardian: ssrf.New(ssrf.WithPorts(cfg.Ports...)),
		exempt:   cfg.Exempt,
		net:      net.Dialer{Timeout: cfg.Connect, Resolver: cfg.Resolver},
	}
}

// dial tries the host's allowed addresses. One public address among forbidden addresses is enough. This matters in
// networks that translate IPv6 (DNS64), where every name has a forbidden address.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var refused, tried atomic.Bool
	n := d.net
	n.Control = func(network, address string, c syscall.RawConn) error {
		err := d.check(network, address, c)
		if err != nil {
			refused.Store(true)
		} else {
			tried.Store(true)
		}
		return err
	}
	conn, err := n.DialContext(ctx, network, address)
	if err != nil && refused.Load() && !tried.Load() {
		return nil, &addressError{err}
	}
	return conn, err
}

// check is called with the numeric address immediately before each connection.
func (d *dialer) check(network, address string, c syscall.RawConn) error {
	err := d.guardian.Safe(network, address, c)
	if err == nil || d.exempt == nil || !errors.Is(err, ssrf.ErrProhibitedIP) {
		return err
	}
	if to, parseErr := netip.ParseAddrPort(address); parseErr != nil || !d.exempt(to) {
		return err
	}
	return nil
}

// forbidden returns why an address must not be fetched, or "" if it is allowed. It is called for the caller's address,
// and for the address in each redirect.
func forbidden(u *url.URL, ports []uint16) puntuale.ReasonCode {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return reasonScheme
	case u.User != nil:
		return reasonUserName
	case u.Hostname() == "" || u.Opaque != "":
		return reasonNoHost
	}
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if text := u.Port(); text != "" {
		var err error
		if port, err = strconv.ParseUint(text, 10, 16); err != nil {
			return reasonPortInvalid
		}
	}
	if !slices.Contains(ports, uint16(port)) {
		return reasonPort
	}
	return ""
}
