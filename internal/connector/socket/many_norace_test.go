//go:build !race && !nosocket

package socket_test

// manyNumbers is how many numbers one node must be able to connect.
const manyNumbers = 500
