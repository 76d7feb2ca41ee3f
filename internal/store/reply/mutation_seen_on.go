//go:build mutate_seen

package reply

// This mutation stores an inbound message again when the network repeats the message. A test must fail because of it.
const forgetsInbound = true
