package dispatch

import (
	"time"
)

// Meter collects the dispatcher's figures.
type Meter interface {
	Late(d time.Duration)                            // time from the message's due time until its intent was committed
	Outcome(connector string, verdict string, n int) // verdict is "sent", "refused", "retry", "uncertain", "expired", "blacklisted" or a similar word
	Queue(messages, sessions int)                    // number of messages in the dispatcher's memory, and of the sessions that they belong to
	Batch(operation string, size int, took time.Duration)
	Fenced(n int) // number of claims and outcomes that were refused because another node owns the session
}
