package puntuale

import "time"

// BlacklistEntry is a number that a client must never write to. Checked at claim, so a start still answers.
type BlacklistEntry struct {
	ID     int64
	Phone  string
	Reason string
	Added  time.Time
}
