//go:build race

package httpapi_test

// raced is true if the race detector is on, which makes the tests slow.
const raced = true
