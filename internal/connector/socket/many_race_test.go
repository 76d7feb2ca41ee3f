//go:build race && !nosocket

package socket_test

// manyNumbers under the race detector, which takes its time and its memory.
const manyNumbers = 40
