//go:build race && !nosocket

package socket_test

// manyNumbers is smaller under the race detector, which needs more time and memory.
const manyNumbers = 40
