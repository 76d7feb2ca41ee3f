// Package store keeps all data on PostgreSQL or in one SQLite file, with the same statements on both. Package engine
// runs the statements: it owns the connections, and the writers that commit. Package store joins most folders below it to
// one [Store], and has the statements about everything else. docs/architecture.md lists the folders.
//
// # The order of locks
//
// Every transaction takes its locks in this order. Rows of one table are locked in the order of their keys:
//
//	node ─▶ idempotency (client, key) ─▶ usage by client ─▶ session by (client, id) ─▶ template ─▶ sequence
//	─▶ campaign by (client, id) ─▶ campaign_feed ─▶ recipient ─▶ message by (client, id) ─▶ client's row by client
//
// A transaction that uses a session, a template or a sequence locks the row first. A transaction that deletes such a
// row locks it for update. If a transaction still ends in a deadlock, its writer runs it again.
//
// # Changes of a message
//
// A statement that changes a message's state or intent compares the stored intent with the intent that the caller saw.
// So if two callers change a message, only one succeeds. The list below contains all such changes. The CHECK
// constraints of the table allow the same changes, and a test compares them with this list:
//
//	PENDING, intent 0   ──Claim──▶ PENDING, intent t      ──Claim──▶ BLACKLISTED     ──Stop, cancel──▶ CANCELLED
//	PENDING, intent 0   ──Settle──▶ FAILED, or later      ───late receipt of delivery──▶ COMPLETED
//	PENDING, intent t   ──Record──▶ COMPLETED | FAILED | PENDING, intent 0 (retry) | PENDING, intent t, later (uncertain)
//	PENDING, intent t   ──Claim──▶ PENDING, intent t' (the answer was lost; repeated under the same connector id)
//	PENDING, intent t   ──Settle──▶ FAILED (given up)     ───late receipt of delivery──▶ COMPLETED
//	FAILED, given up    ───late receipt of delivery──▶ COMPLETED
//	PENDING, intent 0; FAILED; CANCELLED; BLACKLISTED     ──Resend──▶ RESCHEDULED, its outcome as it was
package store
