//go:build !race && !nosocket

package socket_test

// manyNumbers is how many numbers one server must be able to connect.
const manyNumbers = 500
