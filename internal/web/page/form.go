package page

import (
	"strconv"

	"puntuale"
)

// Count reads a number that the server wrote into a form, such as how many rows an action changed so far. It returns 0 for
// anything else, and at most a billion.
func Count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return min(max(0, n), 1_000_000_000)
}

// Total returns what a count up to [puntuale.MaxCounted] says: a larger number if there are more, and -1 if counting would
// take long.
func Total(n int, all bool, err error) (int, error) {
	switch {
	case all:
		return n, err
	case n == puntuale.MaxCounted:
		return n + 1, err
	}
	return -1, err
}
