//go:build !mutate_silence

package official

// silenceIsProof turns on a mutation: see mutation_silence_on.go.
const silenceIsProof = false
