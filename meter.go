package puntuale

import "time"

// Meter collects the figures that operators see. Its methods are quick. Many goroutines may call them at the same time.
type Meter interface {
	DispatchMeter
	StoreMeter
}

// DispatchMeter collects the dispatcher's figures.
type DispatchMeter interface {
	Late(d time.Duration)                            // time from the message's due time until its intent was committed
	Outcome(connector string, verdict string, n int) // verdict is "sent", "refused", "retry", "uncertain", "expired", "blacklisted" or a similar word
	Queue(messages, sessions int)                    // number of messages in the dispatcher's memory, and of the sessions that they belong to
	Batch(operation string, size int, took time.Duration)
	Fenced(n int) // number of claims and outcomes that were refused because another node owns the session
}

// StoreMeter collects the store's figures.
type StoreMeter interface {
	CapRefused(n int)
	Batch(operation string, size int, took time.Duration)
	Deadlock()
	Quarantined(n int) // number of messages that a failover of the database made uncertain
}

// NoMeter ignores all figures.
type NoMeter struct{}

func (NoMeter) Late(time.Duration)               {}
func (NoMeter) Outcome(string, string, int)      {}
func (NoMeter) Queue(int, int)                   {}
func (NoMeter) CapRefused(int)                   {}
func (NoMeter) Batch(string, int, time.Duration) {}
func (NoMeter) Deadlock()                        {}
func (NoMeter) Fenced(int)                       {}
func (NoMeter) Quarantined(int)                  {}
