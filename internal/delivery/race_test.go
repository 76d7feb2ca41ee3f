//go:build race

package delivery_test

// raced says that the race detector is on. It makes everything slower.
const raced = true
