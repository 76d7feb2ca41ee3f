//go:build !race && !nosocket

package socket_test

// manyNumbers are as many as one server is to have.
const manyNumbers = 500
