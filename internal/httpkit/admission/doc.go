// Package admission admits, delays or refuses a request before it is worked on. All of it serves one promise. A server that gets more than
// it can do answers soon, uses bounded memory, and still sends what is due on time.
//
// A request meets its parts in this order: the [ConnectionLimiter], the deadlines of a connection and of a body, the [RateLimiter], the
// [Gate], the [MemoryBudget]. A refusal meets the [RefusalPacer] and [Linger]. Behind the gate, a call may wait for parts of the store:
// list slots, read pools and the writers. docs/admission.md draws the whole way, and names for each part the test that needs it.
package admission
