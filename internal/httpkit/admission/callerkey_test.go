package admission_test

import (
	"net/netip"
	"testing"

	"puntuale/internal/httpkit/admission"
)

// The addresses of one IPv6 network count as one unknown caller, because one internet connection has many addresses.
func TestAddressKey(t *testing.T) {
	t.Parallel()
	key := func(text string) admission.CallerKey { return admission.AddressKey(netip.MustParseAddr(text)) }
	if key("192.0.2.1") == key("192.0.2.2") || key("2001:db8::1") != key("2001:db8::ffff:1") || key("2001:db8::1") == key("2001:db8:0:1::1") {
		t.Error("addresses are told apart wrongly")
	}
	if admission.AddressKey(netip.Addr{}) != (admission.CallerKey{}) {
		t.Error("no address is somebody")
	}
}
