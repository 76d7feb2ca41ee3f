// Package dispatch moves due messages to their connectors, each at its moment and at most once in sight of the network.
//
// One goroutine, the scheduler, owns all queues in memory; everything slow happens beside it and comes back to it as
// mail:
//
//	poll, hint ─▶ read what is due soon ─▶ read contents ─▶ Prepare          (reader.go, prepare.go)
//	                                                          │
//	        alarm at the message's moment, round robin ◀──────┘              (scheduler.go, lane.go, ring.go)
//	                     │  slot, pace, recipient's turn, window, validity
//	                     ▼
//	              claim with intent, batches across sessions                 (claim.go)
//	                     │  commit on disk
//	                     ▼
//	              Connector.Send, a goroutine each ─▶ Decide                 (send.go)
//	                     │
//	                     ▼
//	              record, batches of whatever ended meanwhile                (record.go)
//
// Nothing in memory is trusted: reads may be stale, hints may be lost, queues may be dropped at any moment. The claim
// repeats every condition on disk, and the poll finds again whatever was forgotten. What memory does know for certain is
// which attempts of this process are still without a recorded outcome; a row that says an attempt was begun and is not
// among them is an orphan of a crash (recover.go).
//
// The member (member.go) keeps the node's lease and decides with the other nodes, by rendezvous hashing, who sends for
// which session.
package dispatch
