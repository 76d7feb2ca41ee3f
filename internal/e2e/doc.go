// Package e2e drives the built binary from outside: its commands, its HTTP interface, its signals. The tests are behind
// the build tag e2e because they take minutes; `make check` runs them. They keep their own ledger of acknowledged
// calls, and compare it with the simulated network's ledger and the final rows.
package e2e
