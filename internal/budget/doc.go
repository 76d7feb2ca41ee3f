// Package budget limits the allocations and processor time of the hot path. Its benchmarks measure planning,
// starting, claiming, recording, dispatching, and the queries of clients. Its tests fail if a change makes one of
// these cost more. The budgets are in testdata/budgets.txt. docs/decisions/speed.md says how to read and
// renew them.
package budget
