// Package puntuale defines the types of the service, their limits, and the interfaces between its parts. Read it first
// if you change the code. docs/architecture.md lists all folders. docs/glossary.md explains our own words. The package
// imports only the standard library. It does no I/O, reads no clock and has no state.
//
// # The way of a message
//
//  1. A caller starts a [Sequence] for one recipient.
//  2. The planner makes [PlannedMessage]s from the sequence, the call's fields, a time zone and the present time.
//  3. The store writes them as one [Run] with its messages and the client's daily usage, in one transaction.
//  4. The server answers the call.
//  5. When a message is due, the dispatcher claims it, sends it and records the outcome.
//
// The same as a picture:
//
//	call ─▶ plan ─▶ run + messages + usage, on disk ─▶ answer
//	                        │
//	                        ▼  due soon
//	                  Connector.Prepare        repeatable, nothing visible happens
//	                        │
//	                        ▼  a slot, and the pace allows it
//	                  claim with intent        one transaction: still open, due and valid, not blacklisted,
//	                        │                  client may send, credit reserved, attempt counted
//	                        ▼
//	                  Connector.Send           the first byte leaves only now
//	                        │
//	                        ▼
//	                  Decide ─▶ outcome        recorded if the message still has the attempt's token
//
// # States
//
// Callers see one of the contract's six states ([State]). In the store a message also has an intent:
//
//   - 0: no attempt is open.
//   - The attempt's token: the network may have the message.
//   - -1: the message is closed.
//
// If it is uncertain whether the network has a message, the attempt's token stays, and callers see PENDING.
//
// The changes of state:
//
//	PENDING ──claim──▶ (in flight; callers see PENDING) ──▶ COMPLETED | FAILED | PENDING again (retry) | uncertain
//	PENDING ──▶ CANCELLED (stop, cancel) | BLACKLISTED (at the due moment) | FAILED (never left: expired, refused)
//	PENDING, FAILED, CANCELLED, BLACKLISTED ──resend──▶ RESCHEDULED, and a new PENDING message
//	uncertain ──receipt, repeat, person, or end of the time──▶ COMPLETED | FAILED
//
// Instants are [time.Time] in UTC with microseconds; the database contains them as integer microseconds of the Unix
// epoch.
package puntuale
