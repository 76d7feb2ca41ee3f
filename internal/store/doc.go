// Package store keeps everything durably, on PostgreSQL or in one SQLite file, with the same statements on both. Package engine runs the
// statements: it has the connections, and the writers that commit.
//
// # The order of locks
//
// Every transaction takes its locks in this order, and rows of one kind sorted by their key:
//
//	node ─▶ idempotency (client, key) ─▶ usage by client ─▶ session by (client, id) ─▶ template ─▶ sequence
//	─▶ campaign by (client, id) ─▶ how far it is fed ─▶ recipient ─▶ message by (client, id) ─▶ client's row by client
//
// A transaction that names a session, a template or a sequence locks it first. A transaction that deletes one locks it for update.
//
// A transaction that still ends in a deadlock is run again.
//
// # Moves of a message
//
// Every statement that moves a message compares its intent with the intent that the caller saw. So if two callers move a message, only one
// succeeds. These are all the moves. The table's checks allow the same shapes, and a test compares them:
//
//	PENDING, intent 0   ──Claim──▶ PENDING, intent t      ──Claim──▶ BLACKLISTED     ──Stop, cancel──▶ CANCELLED
//	PENDING, intent 0   ──Settle──▶ FAILED, or later      ───late receipt of delivery──▶ COMPLETED
//	PENDING, intent t   ──Record──▶ COMPLETED | FAILED | PENDING, intent 0 (retry) | PENDING, intent t, later (uncertain)
//	PENDING, intent t   ──Claim──▶ PENDING, intent t' (the answer was lost; repeated under the same connector id)
//	PENDING, intent t   ──Settle──▶ FAILED (given up)     ───late receipt of delivery──▶ COMPLETED
//	FAILED, given up    ───late receipt of delivery──▶ COMPLETED
//	PENDING, intent 0; FAILED; CANCELLED; BLACKLISTED     ──Resend──▶ RESCHEDULED, its outcome as it was
package store
