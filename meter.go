package puntuale

import "time"

// Meter takes the figures that operators see. Its methods are quick and may be called by many goroutines at once.
type Meter interface {
	DispatchMeter
	StoreMeter
}

// DispatchMeter takes the dispatcher's figures.
type DispatchMeter interface {
	Late(d time.Duration)                            // how long after the message's due moment its intent was committed
	Outcome(connector string, verdict string, n int) // "sent", "refused", "retry", "uncertain", "expired", "blacklisted" …
	Queue(messages, sessions int)                    // what the dispatcher holds in memory, and for how many sessions
	Batch(operation string, size int, took time.Duration)
	Fenced(n int) // claims and outcomes that were refused because another node owns the session
}

// StoreMeter takes the store's figures.
type StoreMeter interface {
	CapRefused(n int)
	Batch(operation string, size int, took time.Duration)
	Deadlock()
	Quarantined(n int) // messages that a failover of the database made uncertain
}

// NoMeter measures nothing.
type NoMeter struct{}

func (NoMeter) Late(time.Duration)               {}
func (NoMeter) Outcome(string, string, int)      {}
func (NoMeter) Queue(int, int)                   {}
func (NoMeter) CapRefused(int)                   {}
func (NoMeter) Batch(string, int, time.Duration) {}
func (NoMeter) Deadlock()                        {}
func (NoMeter) Fenced(int)                       {}
func (NoMeter) Quarantined(int)                  {}
