package puntuale

import (
	"cmp"
	"slices"
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
	Portfolio Portfolio
}

// Portfolio says how many people the numbers of one business at the network address outside 24-hour windows. The network
// limits the people of any 24 hours, for all numbers of the business together.
type Portfolio struct {
	Limit    int // 0: no limit, or unknown
	Used     int // people addressed in the last 24 hours
	Reserved int // people with messages planned for the next 24 hours
	Room     int // how many more people may be addressed now, so that each planned message can leave at its time; only with a Limit

	Holder SessionID // the session whose row counts the chunks of the business's campaigns; 0: none
	Chunks int64     // how many chunks were fed when this was counted
}

// PortfolioUse is when one person is addressed outside a 24-hour window.
type PortfolioUse struct {
	Last time.Time // the last message that left; zero: none in the last 24 hours
	Next time.Time // the first message that is planned; zero: none in the next 24 hours
}

// ServicePeriod is how long the network counts a person after a message.
const ServicePeriod = 24 * time.Hour

// PortfolioOf counts people. A person counts from each message on for [ServicePeriod]. So the room is what is left at that
// time of the next 24 hours at which most people count.
func PortfolioOf(limit int, all []PortfolioUse, now time.Time) Portfolio {
	type change struct {
		at time.Time
		by int
	}
	p := Portfolio{Limit: limit}
	var changes []change
	counted := 0
	for _, u := range all {
		end := u.Last.Add(ServicePeriod)
		used, planned := end.After(now), !u.Next.IsZero() && u.Next.Before(now.Add(ServicePeriod))
		if used {
			p.Used++
		}
		if planned {
			p.Reserved++
		}
		starts := planned && u.Next.After(now)
		if planned && (!starts || used && !u.Next.After(end)) {
			counted++ // for all of the next 24 hours
			continue
		}
		if used {
			counted++
			changes = append(changes, change{end, -1})
		}
		if starts {
			changes = append(changes, change{u.Next, 1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	most := counted
	for _, c := range changes {
		counted += c.by
		most = max(most, counted)
	}
	p.Room = max(0, limit-most)
	return p
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
