package main

import (
	"net/netip"

	"puntuale"
	"puntuale/internal/media"
)

// filesFrom is an address with a port from which the server may fetch files, although the address is not public. It is
// no setting. Only a build for tests sets it, with the linker flag -ldflags "-X main.filesFrom=127.0.0.1:8080".
var filesFrom = ""

// filesAsBuilt returns how this build fetches files.
func filesAsBuilt() media.Config {
	from, err := netip.ParseAddrPort(filesFrom)
	if err != nil {
		return media.Config{}
	}
	return media.Config{Ports: []uint16{from.Port()}, Exempt: func(to netip.AddrPort) bool { return to == from }}
}

// files returns the part with which pages test whether there is a file at an address. It returns nil if the server
// fetches no files.
func (s *server) files() puntuale.MediaSource {
	if s.media == nil {
		return nil
	}
	return s.media
}
