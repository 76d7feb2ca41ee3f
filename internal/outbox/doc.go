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
// A delivery is in memory from the moment when it is read until its result is on disk. During this time no read takes
// it again, so one process never makes two attempts for it at once. Only the owner of a webhook reads its deliveries.
// If a process crashes, its deliveries in memory are lost. The next owner attempts them again, with the same ids.
//
// A receiver that hangs or fails does not delay others. There are two pools of attempts: one for receivers that
// answer, one for receivers that do not. A receiver that keeps failing gets one attempt at a time, and the time
// between attempts grows. Its other deliveries wait in the database and are not attempted.
package outbox
