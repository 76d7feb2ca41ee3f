//go:build race && !nosocket

package socket_test

// manyNumbers is smaller here, because the race detector needs more time and memory.
const manyNumbers = 40
