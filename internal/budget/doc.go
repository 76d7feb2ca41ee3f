// Package budget holds what the hot path may cost in allocations and processor time. It has benchmarks, and tests that fail
// when a change makes the path dearer: planning, starting, claiming, recording, dispatching, and the queries of clients.
// docs/benchmark.md tells how to read and how to renew the budgets, which are in testdata/budgets.txt.
package budget
