//go:build mutate_silence

package official

// This mutation takes a lost answer for evidence that nothing arrived, so that the message is sent again. It exists so that
// tests can show that they notice.
const silenceIsEvidence = true
