//go:build mutate_seen

package store

// This mutation accepts an inbound message again when the network repeats it. It exists to show that tests notice it.
const forgetsInbound = true
