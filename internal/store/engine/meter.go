package engine

import (
	"time"
)

// Meter collects the store's figures.
type Meter interface {
	CapRefused(n int)
	Batch(operation string, size int, took time.Duration)
	Deadlock()
	Quarantined(n int) // number of messages that a failover of the database made uncertain
}
