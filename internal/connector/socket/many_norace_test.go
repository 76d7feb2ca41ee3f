//go:build !race && !nosocket

package socket_test

// manyNumbers is how many numbers one server must carry.
const manyNumbers = 500
