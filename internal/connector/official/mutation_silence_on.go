//go:build mutate_silence

package official

// This mutation takes a lost answer as proof that nothing arrived, so that the message is sent again. Tests must fail
// on it.
const silenceIsEvidence = true
