//go:build mutate_silence

package official

// This mutation takes a lost answer as proof that nothing arrived, so the message is sent again. The mutation shows
// that the tests notice this fault.
const silenceIsProof = true
