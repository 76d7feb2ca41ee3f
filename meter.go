package puntuale

import "time"

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
