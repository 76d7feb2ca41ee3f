// Package e2e tests the built binary from outside: its commands, its HTTP interface, its signals. The tests have the
// build tag e2e because they take minutes; `make check` runs them. They write a ledger of acknowledged calls. They
// compare this ledger with the simulated network's ledger and with the final rows.
package e2e
