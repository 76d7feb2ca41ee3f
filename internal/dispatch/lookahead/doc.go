// Package lookahead decides, for one session, when the session's messages are read and how far. It only decides: it
// has no lock, no goroutine and no clock. The scheduler tells it what happened and when, and does what the returned
// [Action] says.
//
//	        Want, Wakeup,
//	        Refill, Resume                         Begin             End
//	Idle ─────────────────▶ Waiting Listed Urgent ───────▶ Reading ───────▶ Idle
//	                           │       │      ▲              │
//	                           └───────┴──────┘              │ Want …
//	                       TimerFired, or Want urgently      ▼          End
//	                                                       Again ─────────────▶ Waiting, Urgent
//
// Waiting, Listed and Urgent all mean that a read is wanted and has not begun. They differ in what will begin it: a
// timer, the list of the poll, or the urgent list. At most one read of a session runs at a time.
//
// A [Lookahead] also keeps how far the next read looks (horizon), where it begins (cursor), and whether the database
// has more (backlog). It keeps when a session that cannot send must be read, to find messages that expire (expiry).
// It also keeps whether the messages in retry under the former owner were read (takeover).
package lookahead
