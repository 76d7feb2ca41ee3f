package main

import (
	"net/netip"

	"puntuale"
	"puntuale/internal/media"
)

// filesFrom is an address with a port. The server fetches files from it, although the address is not public. No setting changes it. Only a
// program built for tests has it, by the linker: -ldflags "-X main.filesFrom=127.0.0.1:8080".
var filesFrom = ""

// filesAsBuilt is how files are fetched.
func filesAsBuilt() media.Config {
	from, err := netip.ParseAddrPort(filesFrom)
	if err != nil {
		return media.Config{}
	}
	return media.Config{Ports: []uint16{from.Port()}, Exempt: func(to netip.AddrPort) bool { return to == from }}
}

// files fetches the addresses that pages try. It is nil where the server fetches nothing.
func (s *server) files() puntuale.MediaSource {
	if s.media == nil {
		return nil
	}
	return s.media
}
