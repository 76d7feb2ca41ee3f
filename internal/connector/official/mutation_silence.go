//go:build !mutate_silence

package official

// silenceIsEvidence is true only in the mutation of mutation_silence_on.go.
const silenceIsEvidence = false
