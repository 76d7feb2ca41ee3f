//go:build mutate_silence

package official

// This mutation takes a lost answer as proof that nothing arrived, so that the message is sent again. It exists to show that tests notice
// it.
const silenceIsProof = true
