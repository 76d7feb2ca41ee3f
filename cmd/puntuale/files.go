package main

import (
	"net/netip"

	"puntuale"
	"puntuale/internal/media"
)

// filesFrom is an address with a port from which the server may fetch files, although the address is not public. No
// setting changes it. Only a program that is built for tests has it, by the linker flag -ldflags "-X
// main.filesFrom=127.0.0.1:8080".
var filesFrom = ""

// filesAsBuilt returns how this build fetches files.
func filesAsBuilt() media.Config {
	from, err := netip.ParseAddrPort(filesFrom)
	if err != nil {
		return media.Config{}
	}
	return media.Config{Ports: []uint16{from.Port()}, Exempt: func(to netip.AddrPort) bool { return to == from }}
}

// files returns the source with which pages try addresses. It is nil if the server fetches no files.
func (s *server) files() puntuale.MediaSource {
	if s.media == nil {
		return nil
	}
	return s.media
}
