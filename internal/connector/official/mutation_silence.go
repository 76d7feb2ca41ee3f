//go:build !mutate_silence

package official

// silenceIsProof is true only in a mutation: see mutation_silence_on.go.
const silenceIsProof = false
