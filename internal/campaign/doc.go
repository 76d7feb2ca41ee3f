// Package campaign starts a sequence, or sends one message, for every recipient of a list. It plans a recipient as a start call would be
// planned, and feeds recipients just ahead of their moments:
//
//	list ─▶ Check: which recipients are refused, and when the last message leaves        (check.go)
//	                      │ a person starts what the check showed
//	                      ▼
//	        Feeder: the next recipients, a chunk a transaction ─▶ runs and messages      (feeder.go)
//
// The rows of the list are the progress. The store's transaction marks them and inserts their runs, so a crash loses and doubles nothing,
// and another node goes on where one stopped.
package campaign
