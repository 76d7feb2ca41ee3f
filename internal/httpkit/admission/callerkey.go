package admission

import (
	"net/netip"

	"puntuale"
)

// CallerKey names a caller. Requests with the same key count together, so that no caller takes all shared resources. The key is an account,
// or an address for a caller that is not known yet.
type CallerKey struct {
	Side    puntuale.Side
	ID      int64
	Address netip.Prefix
}

// AddressKey is the key of unknown callers. One household may have all addresses of an IPv6 network of 64 bits, so they count as one.
func AddressKey(from netip.Addr) CallerKey {
	bits := from.BitLen()
	if from.Is6() {
		bits = 64
	}
	network, _ := from.Prefix(bits) // fails for the zero address only, whose prefix is the zero one
	return CallerKey{Address: network}
}
