//go:build !mutate_silence

package official

// silenceIsProof is a mutation's; see mutation_silence_on.go.
const silenceIsProof = false
