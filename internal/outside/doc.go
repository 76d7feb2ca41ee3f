// Package outside reads what other servers answer. Such a server may belong to anyone, so every read has a bound in bytes,
// in time and in memory. The table [Kinds] lists the bounds. A test lets a hostile server answer to each kind.
//
// The memory of an answer counts in the budget of requests. For an answer that a call waits for, the call's grant counts
// it. For background work, [MemoryGrants] opens a grant under the client.
package outside
