// Package campaign starts a sequence, or sends one message, for every recipient of a list. It plans each recipient in
// the same way as a start call, and feeds the recipients shortly before their times:
//
//	list ─▶ Check: which recipients are refused, and when the last message leaves        (check.go)
//	                      │ a person starts what the check showed
//	                      ▼
//	        Feeder: the next recipients, one chunk at a time ─▶ runs and messages        (feeder.go)
//
// The rows of the list record the progress. One transaction of the store marks rows as fed and inserts their runs.
// Therefore, a crash loses no recipient and feeds none twice, and another node can continue.
package campaign
