// Package automation decides what a client's rules do, and runs them.
//
//	Check: what is wrong with a rule                                     (check.go)
//	Decide: what a rule does for a person, and why not; pure             (decision.go)
//	Runner: takes triggers, timers and dates, decides, and has the store act   (runner.go)
//
// Any number of nodes run at once. A trigger, a timer and a date are rows. The store's transaction that acts removes or moves the row that
// led to it, so a crash loses and doubles nothing.
package automation
