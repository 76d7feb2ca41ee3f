// Package puntuale is the vocabulary of the service: its nouns, their limits and the promises between its parts.
// It imports the standard library only, does no I/O, reads no clock and keeps no state. docs/glossary.md explains each word.
//
// # The way of a message
//
// An integrator's call starts a [Sequence] for one recipient. The planner turns the sequence, the call's fields, a time
// zone and the present moment into [PlannedMessage]s. The store keeps them as one [Run] with its messages, in one
// transaction with the client's daily usage. Only then is the call answered.
//
//	call ─▶ plan ─▶ run + messages + usage, on disk ─▶ answer
//	                        │
//	                        ▼  due soon
//	                  Connector.Prepare        repeatable, nothing visible happens
//	                        │
//	                        ▼  a slot, a pace token
//	                  claim with intent        one transaction: still open, due and valid, not blacklisted,
//	                        │                  client alive, credit reserved, attempt counted
//	                        ▼
//	                  Connector.Send           the first byte leaves only now
//	                        │
//	                        ▼
//	                  Decide ─▶ outcome        recorded where the intent's token still matches
//
// Outside, a message is in one of the contract's six states ([State]). Inside, an open one also has an intent. It is 0
// while nothing was tried, the attempt's token while the network may have it, and -1 once it is closed:
//
//	PENDING ──claim──▶ (in flight; PENDING outside) ──▶ COMPLETED | FAILED | PENDING again (retry) | uncertain
//	PENDING ──▶ CANCELLED (stop, cancel) | BLACKLISTED (at the due moment) | FAILED (never left: expired, refused)
//	FAILED, CANCELLED, BLACKLISTED ──re-send──▶ RESCHEDULED, and a new PENDING message
//	uncertain ──receipt or a person──▶ COMPLETED | FAILED
//
// Instants are [time.Time] in UTC with microseconds; stores keep them as integer microseconds of the Unix epoch.
package puntuale
