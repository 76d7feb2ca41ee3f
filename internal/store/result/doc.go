// Package result counts what became of messages: by day, and by what they belong to.
//
// # Exact, although nobody counts where messages change
//
// A transaction that changes what a report counts only notes the messages ([Note]). Soon after, the counter reads what
// these messages are now, compares it with how each was counted before, and applies the difference. So it does not
// matter what happened in between, in which order, or how often a message was noted. A count from scratch notes
// nothing: the counter goes through all messages of the client.
//
// # What is counted
//
// The unit is a step of a run, not a row. A message that was sent again or got another time, and the messages that took
// its place, are one unit: they have the same run and the same step. The unit has the id of its first message. What
// only waited and was replaced does not count. Else each count is true for the unit if it is true for one of its
// messages.
package result
