package puntuale

import (
	"context"
	"time"
)

// KnownPerson is what a session knows of a person.
type KnownPerson struct {
	Window time.Time // until then an Official session may send free text; zero: the person never wrote
	Known  bool      // the person wrote to the session, or got something from it
}

// SessionUsage counts what a session sent since a moment, and says what its network allows.
type SessionUsage struct {
	Sent      int // messages that left
	Met       int // people that it wrote to for the first time
	Addressed int // people that all numbers of its business wrote to outside the 24-hour window
	Portfolio int // how many of them the network allows in 24 hours; 0: no limit, or unknown
}

// EstimateStore is the part of the store that estimates of a campaign read. Codes: not_found.
type EstimateStore interface {
	// KnownPersons returns what the session knows of the phones. It leaves out unknown phones.
	KnownPersons(ctx context.Context, session SessionID, phones []string) (map[string]KnownPerson, error)
	// Charges returns the prices that the network reported for the delivered messages of a campaign.
	Charges(ctx context.Context, id CampaignID) ([]ChargeCount, error)
	// SessionLoad reads the client's outcomes since the moment, by an index. A check calls it once.
	SessionLoad(ctx context.Context, session SessionID, since time.Time) (SessionUsage, error)
}

// MessageKind is the kind of a message that decides the network's price.
type MessageKind struct {
	Country  string `json:"country"`  // the country of the recipient's number, two letters; "": unknown
	Category string `json:"category"` // marketing, utility, authentication or service; "": unknown
}

// CategoryService is the category of messages without a template.
const CategoryService = "service"

// CampaignCost is what a network takes for a campaign's messages. The JSON form is what stores keep.
type CampaignCost struct {
	Currency string    `json:"currency"`
	Amount   string    `json:"amount"` // an exact decimal number; messages without a price are not included
	Date     string    `json:"date"`   // the date of the prices, YYYY-MM-DD
	Rows     []CostRow `json:"rows,omitempty"`
	Unknown  int       `json:"unknown,omitempty"` // messages without a price
}

// CostRow is what messages of one kind cost. A cost lists only the 20 kinds with the most messages.
type CostRow struct {
	MessageKind
	Messages int    `json:"messages"`
	Amount   string `json:"amount,omitempty"` // "": there is no price
}

// ChargeCount is how many messages of a kind the network billed, or delivered free of charge.
type ChargeCount struct {
	MessageKind
	Billable bool
	Messages int
}
