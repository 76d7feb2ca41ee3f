// Package socket sends through numbers that people linked, as WhatsApp's own companion devices do. It uses the library
// whatsmeow. Each number has one connection. This package encrypts each message for each device of the recipient.
//
// A [number] is a session that is open on this node. Its state changes when the library reports an event, when a caller
// gives a command, and when a timer ends. All changes happen under one lock. API, metrics and pages all show this
// state:
//
//	unlinked ──Pair──▶ pairing ──a phone──▶ connecting ──▶ online ──lost──▶ waiting ──▶ connecting
//	    ▲                  │                    │             │
//	    └──no phone────────┘                    ├─────────────┴──▶ banned (until) ──▶ connecting
//	    └──Unlink, from any state               ├──▶ outdated ──a later version is known──▶ connecting
//	                                            ├──▶ replaced ──Reconnect──▶ connecting
//	                                            └──▶ logged out ──Pair──▶ pairing
//
// The keys of linked numbers are in a database, in the library's tables. All data that would let another program act as
// the number, or read its messages, are sealed (device.go, sealed.go). WhatsApp's id of a message contains Puntuale's
// id of that message, encrypted (id.go). Therefore a repeat has the same id as the first attempt, and a receipt leads
// to its message.
//
// The comments of this package describe the library's version of 2026-09-21.
package socket
