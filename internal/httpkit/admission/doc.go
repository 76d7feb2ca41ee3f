// Package admission admits, delays or refuses a request before the server works on it. Its parts serve one goal. A
// server that gets more calls than it can handle still answers soon, uses bounded memory, and sends messages on time.
//
// A request passes the parts in this order: the [ConnectionLimiter], the deadlines of a connection and of a body, the
// [RateLimiter], the [Gate], the [MemoryBudget]. A refusal passes the [RefusalPacer] and [Linger]. Behind the gate, a
// call may wait for parts of the store: list slots, read pools and the writers. docs/admission.md shows the whole way
// of a request. For each part it names the test that fails without the part.
package admission
