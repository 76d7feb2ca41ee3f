//go:build mutate_seen

package store

// This mutation takes a message again that the network repeats. It exists to show that tests notice it.
const forgetsInbound = true
