// Package dispatch gives due messages to their connectors, each at its moment. It never sends a message twice, except
// as a repeat that the network recognises or that the step asks for.
//
// One goroutine, the scheduler, owns all queues in memory. Everything slow runs in other goroutines, which send their
// results to the scheduler's mailbox:
//
//	poll, wakeup ─▶ read what is due soon ─▶ read contents ─▶ Prepare        (reader.go, prepare.go)
//	                                                            │
//	        timer at the message's moment, fair queue ◀─────────┘            (sessionqueue.go, fairqueue.go)
//	                     │  slot, pace, recipient order, window, deadline
//	                     ▼
//	              claim with intent, batches across sessions                 (claim.go)
//	                     │  commit on disk
//	                     ▼
//	              Connector.Send, a goroutine each ─▶ Decide                 (send.go)
//	                     │
//	                     ▼
//	              record, batches of what ended meanwhile                    (recorder.go)
//
// The dispatcher does not trust memory: reads may be old, wakeups may be lost, and queues may be dropped at any
// moment. The claim checks every condition again on disk, and the poll finds all forgotten messages again. Memory is
// certain about one thing: which attempts of this process have no recorded outcome. If a row has an attempt that is
// not among them, a crash left it behind (recovery.go).
//
// Package lookahead decides when a session is read, and how far. The membership keeps the node's lease. It also
// decides, by rendezvous hashing, which node sends for a session; all nodes come to the same result (membership.go).
package dispatch
