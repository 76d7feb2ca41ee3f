package admission

import (
	"net/netip"

	"puntuale"
)

// CallerKey identifies a caller: an account, or an address if the account is not known yet. Limits count all requests
// with the same CallerKey together, so that no caller takes all shared resources.
type CallerKey struct {
	Side    puntuale.Side
	ID      int64
	Address netip.Prefix
}

// AddressKey returns the CallerKey of an unknown caller. All addresses of an IPv6 network of 64 bits count as one
// caller, because one household may have all of them.
func AddressKey(from netip.Addr) CallerKey {
	bits := from.BitLen()
	if from.Is6() {
		bits = 64
	}
	network, _ := from.Prefix(bits) // this fails only for the zero address, which then gets the zero prefix
	return CallerKey{Address: network}
}
