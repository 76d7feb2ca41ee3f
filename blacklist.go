package puntuale

import "time"

// BlacklistEntry is a number that a client must never write to. The dispatcher checks it at the claim, so a start for such a number still
// succeeds.
type BlacklistEntry struct {
	ID     int64
	Phone  string // "" in lists once the person was erased
	Mark   string // what stands for the phone then; only given, never answered
	Erased bool
	Reason string
	Added  time.Time
	OptOut bool // an opt-out made it, and its undo removes it
}

// BlacklistFilter chooses entries; an empty filter chooses all.
type BlacklistFilter struct {
	Digits string // that the number holds, one after the other; "": no number
	Mark   string // or the entry stands under this mark
	Text   string // or the reason holds this, in any case of letters
}
