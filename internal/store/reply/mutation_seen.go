//go:build !mutate_seen

package reply

// forgetsInbound is true only with a build tag; see mutation_seen_on.go.
const forgetsInbound = false
