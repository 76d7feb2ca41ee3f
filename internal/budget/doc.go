// Package budget bounds the allocations and processor time of the hot path. It has benchmarks, and tests that fail when a change makes the
// path cost more: planning, starting, claiming, recording, dispatching, and the queries of clients. docs/decisions/0020-hot-path.md says
// how to read and renew the budgets, which are in testdata/budgets.txt.
package budget
