//go:build !mutate_seen

package store

// forgetsInbound is a mutation's; see mutation_seen_on.go.
const forgetsInbound = false
