package puntuale

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// Near reports whether most of the network's limit of new people is used or reserved.
func (p Portfolio) Near() bool {
	return p.Limit > 0 && 100*(p.Used+p.Reserved) >= BudgetWarning*p.Limit
}

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
	Rest     []CostRow `json:"rest,omitempty"`    // of the kinds that have no row, by category
	Unknown  int       `json:"unknown,omitempty"` // number of messages without a price

	Own      bool          `json:"-"` // the partner's own prices decide, where it set some
	ToClient *CampaignCost `json:"-"` // what the client sees instead, if a user of the partner asks; nil: the same
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

// Month is a month in a client's zone, as a number such as 202611.
type Month int

// MonthOf returns the month of a moment in the moment's zone.
func MonthOf(t time.Time) Month { return Month(t.Year()*100 + int(t.Month())) }

// MonthIn returns the month of a moment in the zone with a name; in UTC if there is no such zone.
func MonthIn(t time.Time, name string) Month {
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	return MonthOf(t.In(zone))
}

// Add returns the month n months later.
func (m Month) Add(n int) Month {
	return MonthOf(time.Date(int(m)/100, time.Month(int(m)%100+n), 1, 0, 0, 0, 0, time.UTC))
}

// Begin returns the first moment of the month.
func (m Month) Begin(zone *time.Location) time.Time {
	return Date{Year: int(m) / 100, Month: time.Month(int(m) % 100), Day: 1}.At(0, zone)
}

func (m Month) String() string { return fmt.Sprintf("%04d-%02d", int(m)/100, int(m)%100) }

// ParseMonth reads a month such as 2026-11, from the year 2000 on.
func ParseMonth(text string) (Month, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil || t.Year() < 2000 {
		return 0, fmt.Errorf("%q is not a month", text)
	}
	return MonthOf(t), nil
}

// Budget is what a client's messages may cost in a month of its zone, and what they cost so far. Amounts are in millionths
// of the currency.
type Budget struct {
	Client   ClientID
	Amount   int64 // 0: none
	Currency string
	Spent    int64     // what the network bills for the month's messages, as it told, or else as the list of prices says
	Month    Month     // the present month in the client's zone, which is counted
	Unpriced int64     // messages of the month for which the list has no price; they are not in Spent
	Began    time.Time // when the month began
	Ends     time.Time // when the next month begins
	Counted  bool      // false: messages that left before the budget was set are still being counted
	Hidden   bool      // the reader may not know the amounts: Amount is 100, and Spent the part of it in percent
}

// Hide removes the amounts, and leaves what part of the budget is used.
func (b *Budget) Hide() {
	if b.Amount > 0 {
		b.Amount, b.Spent, b.Hidden = 100, int64(b.Percent()), true
	}
}

// MaxBudget is the largest budget: 10 million.
const MaxBudget int64 = 10_000_000 * moneyUnit

const moneyUnit = 1_000_000

// Money returns millionths of a currency as an exact decimal number, with at least two decimals.
func Money(millionths int64) string {
	if millionths < 0 {
		return "-" + Money(-millionths)
	}
	fraction := fmt.Sprintf("%06d", millionths%moneyUnit)
	for len(fraction) > 2 && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	return fmt.Sprintf("%d.%s", millionths/moneyUnit, fraction)
}

// ParseMoney reads an amount of at most [MaxBudget] with at most two decimals, such as 50 or 49.90, in millionths.
func ParseMoney(text string) (int64, error) {
	whole, cents, _ := strings.Cut(text, ".")
	if whole == "" || len(whole) > 8 || len(cents) > 2 || strings.Trim(whole+cents, "0123456789") != "" || strings.HasSuffix(text, ".") {
		return 0, fmt.Errorf("%q is not an amount such as 49.90", text)
	}
	n, err := strconv.ParseInt(whole+cents+strings.Repeat("0", 6-len(cents)), 10, 64)
	if err != nil || n > MaxBudget {
		return 0, fmt.Errorf("%q is not an amount of at most %s", text, Money(MaxBudget))
	}
	return n, nil
}

// BudgetWarning is the part of a budget, in percent, at which people are warned.
const BudgetWarning = 80

// Percent returns how much of the budget is used, rounded down.
func (b Budget) Percent() int {
	if b.Amount == 0 {
		return 0
	}
	return int(float64(b.Spent) / float64(b.Amount) * 100)
}

// Used reports whether the budget is used up, so that marketing waits.
func (b Budget) Used() bool { return b.Amount > 0 && b.Counted && b.Spent >= b.Amount }

// FreeServiceMessages is how many service messages of a number Meta does not bill in a calendar month.
const FreeServiceMessages = 1000

// BilledMessage is a message that left, as a statement counts it.
type BilledMessage struct {
	ID        MessageID
	Done      time.Time // when its outcome was recorded
	Network   ConnectionType
	Sandbox   bool
	Origin    Origin
	Purpose   Purpose
	Phone     string    // "": the person was erased
	Credit    bool      // the client paid a credit
	Charge    Charge    // what the network said that it bills; before that the kind that was kept when content or number were removed
	ChargedAt time.Time // zero: the network did not say
	Template  string    // the category of the approved template in its content, in small letters; "": unknown, or no template
	Sent      bool      // the network accepted the message
	Late      bool      // the message failed after it was sent, in an answer about those
}

// BilledPeriod asks for messages of a client whose outcomes were recorded from From on, and before To. If ChargedFrom is set, only
// messages whose charge became known from this moment on. If Late is set, only messages that left in that month, and failed
// later.
type BilledPeriod struct {
	From, To    time.Time
	ChargedFrom time.Time
	Late        bool
	After       BilledMessage // continue after this message: only its ID and Done count
	Limit       int
}

// Statement says what a client used in a month.
type Statement struct {
	Client   ClientID        `json:"-"`
	Month    Month           `json:"-"`
	Zone     string          `json:"zone"`
	Calls    int64           `json:"calls"`
	Credits  int64           `json:"credits"`
	Currency string          `json:"currency"`  // of the network's prices
	PricesOf string          `json:"prices_of"` // the date of the list of prices
	Own      Prices          `json:"own,omitzero"`
	Before   *Prices         `json:"before,omitempty"` // of the month before, for its corrections; nil: the month is not closed
	Lines    []StatementLine `json:"lines"`

	Frozen    time.Time `json:"-"` // zero: the month is not closed
	CountedTo time.Time `json:"-"` // what became known later is not in it
	Complete  bool      `json:"-"` // all messages were counted
}

// StatementLine counts messages of one kind.
type StatementLine struct {
	MessageKind
	Month    Month          `json:"month,omitempty"` // of a correction: the month that it corrects; 0: the statement's own
	Network  ConnectionType `json:"network"`
	Origin   Origin         `json:"origin"`
	Source   PriceSource    `json:"source"`
	Free     bool           `json:"free,omitempty"`  // the network said that it bills nothing
	Messages int            `json:"messages"`        // negative in a correction that takes messages back
	Price    string         `json:"price,omitempty"` // of all messages, an exact decimal number; "": unknown, or the network has no prices
}

// StatementPart is messages that a month counted in one line. Only the fields of the line that say what is in it are set.
type StatementPart struct {
	Line     StatementLine
	Messages []MessageID
}

// PriceSource says where the category of a line comes from.
type PriceSource string

const (
	PriceReported  PriceSource = "reported"  // the network said what it bills
	PriceEstimated PriceSource = "estimated" // the network did not say; the content and purpose decide
	PriceNone      PriceSource = "none"      // the network bills nothing for single messages
)

// Prices are what a partner asks for a message of each category of [OwnCategories], as exact decimal numbers.
type Prices struct {
	Currency string            `json:"currency"`
	Each     map[string]string `json:"each"`
}

// OwnCategories are the categories for which a partner can set a price.
var OwnCategories = []string{"marketing", "utility", "authentication", "service"}

// Of returns the partner's price of a message of a network's category; "": it set none.
func (p Prices) Of(category string) string {
	for _, own := range OwnCategories {
		if strings.Contains(category, own) {
			return p.Each[own]
		}
	}
	return p.Each[CategoryService]
}

// UnclosedMonth names a client whose statement of a month is not frozen.
type UnclosedMonth struct {
	Client  ClientID
	Partner PartnerID
	Zone    string
}
