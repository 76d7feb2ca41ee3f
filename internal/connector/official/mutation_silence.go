//go:build !mutate_silence

package official

// silenceIsEvidence is a mutation's; see mutation_silence_on.go.
const silenceIsEvidence = false
