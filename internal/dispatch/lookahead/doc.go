// Package lookahead knows how far one session's messages were read, and decides what is read next. It only decides. It has no lock, no
// goroutine and no clock: the scheduler tells what happened and when, and does what the returned [Action] says.
//
//	        Want, Wakeup,
//	        Refill, Resume                         Begin             End
//	Idle ─────────────────▶ Waiting Listed Urgent ───────▶ Reading ───────▶ Idle
//	                           │       │      ▲              │
//	                           └───────┴──────┘              │ Want …
//	                       TimerFired, or Want urgently      ▼          End
//	                                                       Again ─────────────▶ Waiting, Urgent
//
// Waiting, Listed and Urgent all mean that a read is wanted. They differ in what brings it about: a timer, the list of the poll, or the
// urgent list. Only one read of a session is under way at a time.
//
// A [Lookahead] keeps more: how far the next read looks (horizon), where it begins (cursor), and whether the database holds more (backlog).
// It knows when a session that cannot send is read for what expires (expiry). And it knows whether the former owner's messages in retry
// were read (takeover).
package lookahead
