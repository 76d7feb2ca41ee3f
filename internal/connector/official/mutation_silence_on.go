//go:build mutate_silence

package official

// In this mutation a lost answer counts as proof that the message did not arrive, so the message is sent again. A test
// must fail because of this mutation.
const silenceIsProof = true
