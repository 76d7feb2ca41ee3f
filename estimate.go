package puntuale

import (
	"time"
)

// KnownPerson says what a session knows about a person.
type KnownPerson struct {
	Window time.Time // until this time an Official session may send free text; zero: the person never wrote
	Known  bool      // the person wrote to the session, or got a message from it
}

// SessionUsage counts what a session sent since a given time. It also contains the network's limit.
type SessionUsage struct {
	Sent      int // messages that left
	Met       int // people who got their first message from the session
	Addressed int // number of people that the session's business, with all its numbers, wrote to outside the 24-hour window
	Portfolio int // how many people the network allows in 24 hours outside the 24-hour window; 0: no limit, or unknown
}

// MessageKind contains the facts about a message on which the network's price depends.
type MessageKind struct {
	Country  string `json:"country"`  // country of the recipient's number, as two letters; "": unknown
	Category string `json:"category"` // marketing, utility, authentication or service; "": unknown
}

// CategoryService is the category of messages without a template.
const CategoryService = "service"

// CampaignCost is what the network charges for a campaign's messages. The store writes it as JSON.
type CampaignCost struct {
	Currency string    `json:"currency"`
	Amount   string    `json:"amount"` // an exact decimal number; does not include messages without a price
	Date     string    `json:"date"`   // date of the price list, YYYY-MM-DD
	Rows     []CostRow `json:"rows,omitempty"`
	Unknown  int       `json:"unknown,omitempty"` // number of messages without a price
}

// CostRow is the cost of all messages of one kind. A cost has rows only for the 20 kinds with the most messages.
type CostRow struct {
	MessageKind
	Messages int    `json:"messages"`
	Amount   string `json:"amount,omitempty"` // "": the price list has no price for this kind
}

// ChargeCount is how many messages of a kind the network billed (Billable), or delivered free of charge.
type ChargeCount struct {
	MessageKind
	Billable bool
	Messages int
}
