//go:build !race

package delivery_test

const raced = false
