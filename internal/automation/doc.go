// Package automation decides what a client's rules do, and runs them.
//
//	Check returns the faults of a rule                                          (check.go)
//	Decide returns why a rule does not act for a person; it is pure             (decision.go)
//	Runner takes triggers, timers and dates, and executes what rules do for them   (runner.go, date.go, contact.go)
//
// Runners of any number of nodes may work at the same time. Each trigger, timer and date is a row of the database. The transaction that executes a
// rule's actions also removes or moves that row. So a crash neither loses an act nor repeats it.
package automation
