package page

import "strconv"

// Count reads a number that the server wrote into a form, such as how many rows an action changed so far. It returns 0 for
// anything else, and at most a billion.
func Count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return min(max(0, n), 1_000_000_000)
}
