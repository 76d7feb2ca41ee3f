// Package lookahead decides, for one session, when the session's messages are read and how far. It only decides: it
// has no lock, no goroutine and no clock. The scheduler calls its methods for each event, with the time of the event,
// and executes the returned [Action].
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
// A [Lookahead] also contains:
//
//   - how far the next read looks (horizon), and where it begins (cursor);
//   - whether the database has messages that are due soon and are not in memory (backlog);
//   - when a session that cannot send must be read, to find messages that expire (expiry);
//   - whether the messages in retry under the former owner were read (takeover).
package lookahead
