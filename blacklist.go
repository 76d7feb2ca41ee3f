package puntuale

import "time"

// BlacklistEntry is a number that a client must never write to. The dispatcher checks it at the claim, so a start for such a number still
// succeeds.
type BlacklistEntry struct {
	ID     int64
	Phone  string // "" in lists once the person was erased
	Mark   string // the keyed hash that replaces the phone then; callers give it, lists never return it
	Erased bool
	Reason string
	Added  time.Time
	OptOut bool // an opt-out made the entry; when the opt-out is undone, the entry is removed
}

// BlacklistFilter chooses entries; an empty filter chooses all.
type BlacklistFilter struct {
	Digits string // consecutive digits in the number; "": do not search numbers
	Mark   string // or the entry has this mark
	Text   string // or the reason contains this text, in any case of letters
}
