//go:build mutate_seen

package reply

// This mutation takes an inbound message again when the network repeats it. It shows that the tests notice that.
const forgetsInbound = true
