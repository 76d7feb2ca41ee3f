// Package dispatch moves due messages to their connectors, each at its moment. The network sees each at most once.
//
// One goroutine, the scheduler, owns all queues in memory. Everything slow happens beside it, and comes back to it by the
// mailbox:
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
// Memory is not trusted: reads may be stale, wakeups may be lost, and queues may be dropped at any moment. The claim
// repeats every condition on disk, and the poll finds again all that was forgotten. One thing is certain in memory: which
// attempts of this process have no recorded outcome yet. A row with an attempt that is not among them is an orphan of a
// crash (recovery.go).
//
// Package lookahead decides when a session is read, and how far. The membership keeps the node's lease. By rendezvous
// hashing it decides with the other nodes which node sends for a session (membership.go).
package dispatch
