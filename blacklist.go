package puntuale

import "time"

// BlacklistEntry is a number that a client must never write to. Checked at claim, so a start still answers.
type BlacklistEntry struct {
	ID     int64
	Phone  string // "" in lists once the person was erased
	Mark   string // what stands for the phone then; only given, never answered
	Erased bool
	Reason string
	Added  time.Time
}
