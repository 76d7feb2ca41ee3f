//go:build race

package httpapi_test

// raced: the race detector slows everything down.
const raced = true
