// Package dispatch sends each message through its connector at the message's due time. It never sends a message twice,
// with two exceptions: repeats that the network recognises, and resends that the step allows.
//
// One goroutine, the scheduler, owns all queues in memory. Everything slow runs in other goroutines, which send their
// results to the scheduler's mailbox:
//
//	poll, wakeup ─▶ read what is due soon ─▶ read contents ─▶ Prepare        (reader.go, prepare.go)
//	                                                            │
//	        timer for the due time, fair queue ◀────────────────┘            (sessionqueue.go, fairqueue.go)
//	                     │  slot, pace, recipient order, window, deadline
//	                     ▼
//	              claim with intent, batches across sessions                 (claim.go)
//	                     │  commit on disk
//	                     ▼
//	              Connector.Send, a goroutine each ─▶ Decide                 (send.go)
//	                     │
//	                     ▼
//	              record, in batches of outcomes                             (recorder.go)
//
// The dispatcher does not trust memory: reads may be old, wakeups may be lost, and queues may be dropped at any time.
// The claim checks every condition again on disk, and the poll finds every message that is no longer in memory. Memory
// is reliable only for one fact: which attempts of this process have no recorded outcome. If a row has another attempt
// without an outcome, a crash left that attempt behind (recovery.go).
//
// Package lookahead decides when a session is read, and how far. The membership renews the node's lease. It also
// decides, by rendezvous hashing, which node sends for a session. All nodes compute the same result (membership.go).
package dispatch
