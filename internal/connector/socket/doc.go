// Package socket sends through numbers that people linked, as WhatsApp's own companion devices do: a connection a
// number, messages encrypted here for each of the recipient's devices.
//
// One [number] is one session that this node has open. Whatever happens to it (events of the library, commands, moments
// that came) goes through its inbox to one goroutine, which keeps the state that callers, figures and pages are shown:
//
//	unlinked ──Pair──▶ pairing ──a phone──▶ connecting ──▶ online ──lost──▶ waiting ──▶ connecting
//	    ▲                  │                    │             │
//	    └──nobody──────────┘                    ├─────────────┴──▶ banned (until) ──▶ connecting
//	    └──Unlink, from any of them             ├──▶ outdated ──a later version is known──▶ connecting
//	                                            ├──▶ replaced ──a person──▶ connecting
//	                                            └──▶ logged out ──Pair──▶ pairing
//
// The keys of linked numbers are in a database of the library's shape, what would let somebody else be the number or
// read its messages sealed (device.go, sealed.go). The id that WhatsApp knows a message by holds ours, encrypted (id.go),
// so that a repeat has the same and a receipt finds its message.
//
// What the library does and does not do is as of version 2026-09-21 of it.
package socket
