package puntuale

import "time"

// BlacklistEntry is a number that a client must never write to. The dispatcher checks the blacklist when it claims a
// message, so a start for a blacklisted number still succeeds.
type BlacklistEntry struct {
	ID    int64
	Phone string // "" in lists after the person was erased
	// Mark is the keyed hash that replaces the phone of an erased person. The store's callers set it, and lists never
	// return it.
	Mark   string
	Erased bool
	Reason string
	Added  time.Time
	OptOut bool // an opt-out made this entry; undoing the opt-out removes the entry
}

// BlacklistFilter chooses the entries that match at least one of its members. An empty filter chooses all entries.
type BlacklistFilter struct {
	Digits string // consecutive digits of the number; "": not used
	Phone  string // the whole number of the entry; "": not used
	Mark   string // the mark of the entry; "": not used
	Text   string // part of the entry's reason, in upper or lower case; "": not used
}
