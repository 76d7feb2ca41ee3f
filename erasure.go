package puntuale

import "time"

// Erasure asks to forget the person behind a phone number, or a group.
type Erasure struct {
	Phone string
	Mark  string // what stands for the phone in the blacklist from now on: [MarkPrefix] and a keyed hash
	Day   Date   // the client's present day, in which one call is counted
	Now   time.Time
}

// Erased is what an erasure reached. What an earlier one did already is not counted in it.
type Erased struct {
	Cancelled   int  // messages that were pending, and are never sent
	Messages    int  // whose number and texts are gone, the cancelled ones among them
	Sandbox     int  // what the simulated network had received, without number and text from now on
	Answers     int  // answers kept for repeats of calls, without the number from now on
	Blacklisted bool // the number is in the blacklist, as a keyed hash from now on
}

// MarkPrefix begins what stands for the number of an erased person in the blacklist. No recipient begins with it.
const MarkPrefix = "~"
