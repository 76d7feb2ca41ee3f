package admission

import (
	"net/netip"

	"puntuale"
)

// CallerKey names a caller. Requests with the same CallerKey count together, so no caller takes all shared resources.
// It is an account, or an address if the caller is not known yet.
type CallerKey struct {
	Side    puntuale.Side
	ID      int64
	Address netip.Prefix
}

// AddressKey is the CallerKey of an unknown caller, by its address. One household may have all addresses of an IPv6
// network of 64 bits. So these addresses count as one caller.
func AddressKey(from netip.Addr) CallerKey {
	bits := from.BitLen()
	if from.Is6() {
		bits = 64
	}
	network, _ := from.Prefix(bits) // this fails only for the zero address, and then the zero prefix is right
	return CallerKey{Address: network}
}
