// Package outbox takes events from the database to the receivers of webhooks.
//
//	facts ─▶ numberer: gives events their numbers, makes deliveries            (numberer.go)
//	                │ wakes
//	                ▼
//	due rows ─▶ Sender: one goroutine owns all queues in memory                (scheduler.go)
//	                │ fair queue, bounds                                       (receiver.go)
//	                ▼
//	            Caller: one attempt, signed, through the safe dialer           (caller.go)
//	                │ result, next attempt                                     (retry.go)
//	                ▼
//	            recorder: writes results in batches                            (recorder.go)
//
// A delivery is in memory from the moment it is read until its result is on disk. Meanwhile no read takes it again, so one process
// never attempts it twice at once. Only the owner of a webhook reads its deliveries. A crash loses what is in memory: the next owner
// attempts it again, with the same id.
//
// A receiver that hangs or fails delays no other. Receivers that answer and those that do not take their attempts from different
// pools. A receiver that keeps failing gets one attempt at a time, ever more seldom. Its other deliveries wait untouched.
package outbox
