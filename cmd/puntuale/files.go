package main

import (
	"net/netip"

	"puntuale"
	"puntuale/internal/media"
)

// filesFrom is an address with a port from which files are fetched although it is not public. No setting reaches it: a
// program built for tests has it from its linker, -ldflags "-X main.filesFrom=127.0.0.1:8080", and every other has none.
var filesFrom = ""

// filesAsBuilt is how files are fetched.
func filesAsBuilt() media.Config {
	from, err := netip.ParseAddrPort(filesFrom)
	if err != nil {
		return media.Config{}
	}
	return media.Config{Ports: []uint16{from.Port()}, Exempt: func(to netip.AddrPort) bool { return to == from }}
}

// files is where pages have addresses tried; nil where nothing is fetched.
func (s *server) files() puntuale.MediaSource {
	if s.media == nil {
		return nil
	}
	return s.media
}
