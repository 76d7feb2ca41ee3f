//go:build race

package outbox_test

// raced: the race detector slows everything down.
const raced = true
