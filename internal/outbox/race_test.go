//go:build race

package outbox_test

// raced says that the race detector is on. It makes everything slower.
const raced = true
