//go:build !mutate_seen

package reply

// forgetsInbound is true only in a mutation; see mutation_seen_on.go.
const forgetsInbound = false
