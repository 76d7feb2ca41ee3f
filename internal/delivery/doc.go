// Package delivery sends events from the database to the receivers of webhooks.
//
//	facts ─▶ numberer: gives events their numbers, makes deliveries            (numberer.go)
//	                │ wakes
//	                ▼
//	due rows ─▶ Sender: one goroutine owns all queues in memory                (scheduler.go)
//	                │ fair queue, limits                                       (receiver.go)
//	                ▼
//	            Caller: one attempt, signed, through the safe dialer           (caller.go)
//	                │ result, next attempt                                     (retry.go)
//	                ▼
//	            recorder: writes results in batches                            (recorder.go)
//
// A delivery is in memory from the time when it is read until its result is on disk. Meanwhile no other read returns
// it, so one process never makes two attempts for this delivery at the same time. Only the owner of a webhook reads the
// webhook's deliveries. If a process crashes, its deliveries in memory stay due. The next owner sends them again, with
// the same ids.
//
// A receiver that hangs or fails does not delay other receivers. There are two pools of attempts: one for receivers
// that answer, and one for receivers that do not. A receiver that keeps failing gets one attempt at a time, and the
// waits between the attempts grow. Its other deliveries wait in the database.
package delivery
