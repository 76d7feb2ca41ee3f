// Package socket sends through numbers that people linked, as WhatsApp's own companion devices do. Each number has one
// connection. This package encrypts each message for each device of the recipient.
//
// One [number] is one session that this node has open. Events of the library, commands and timers change its state one
// at a time, under one lock. API, metrics and pages all show this state:
//
//	unlinked ──Pair──▶ pairing ──a phone──▶ connecting ──▶ online ──lost──▶ waiting ──▶ connecting
//	    ▲                  │                    │             │
//	    └──nobody──────────┘                    ├─────────────┴──▶ banned (until) ──▶ connecting
//	    └──Unlink, from any of them             ├──▶ outdated ──a later version is known──▶ connecting
//	                                            ├──▶ replaced ──a person──▶ connecting
//	                                            └──▶ logged out ──Pair──▶ pairing
//
// The keys of linked numbers are in a database with the library's tables. Everything that would let another program act
// as the number, or read its messages, is sealed (device.go, sealed.go). WhatsApp's id of a message contains our id,
// encrypted (id.go). So a repeat has the same id, and a receipt finds its message.
//
// All statements about the library are for its version of 2026-09-21.
package socket
