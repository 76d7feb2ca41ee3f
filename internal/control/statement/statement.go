// Package statement says what a client used in a month: calls, messages by origin and category, credits, what the network
// bills for them, and what the partner asks for them. A month is counted when somebody asks, until it is closed; then it
// never changes, and what becomes known later is a correction in the next month.
package statement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
	"puntuale/internal/price"
)

// Config contains the parts of [Statements]. Prices may be nil; then the embedded table is used.
type Config struct {
	Tenants     puntuale.TenantStore
	Maintenance puntuale.MaintenanceStore
	Budgets     BudgetStore
	Clock       clock.Clock
	Prices      *price.Table
}

// Statements counts and closes months. It is safe for concurrent use.
type Statements struct {
	cfg   Config
	zones request.Zones
}

// New returns Statements.
func New(cfg Config) *Statements {
	if cfg.Prices == nil {
		cfg.Prices = price.Embedded()
	}
	return &Statements{cfg: cfg}
}

const (
	// Grace is how long after its end a month is closed. By then most networks have said what they bill.
	Grace = 72 * time.Hour

	chunk         = 2000
	openBound     = 50_000           // how many messages are counted for one answer about months that are not closed, and besides chunk of each client
	partnerBound  = 200_000          // how many messages are counted for one answer about all clients; it may be exceeded by less than chunk
	together      = 50               // how many clients one look for months finds
	deletedAtOnce = 1000             // how many deleted clients one look finds
	held          = 30 * time.Minute // how long a node may count one month
	settle        = time.Minute      // evidence is stored at most this long after its time

	memoryOfLine = 512 // bytes that a line of an answer needs
)

// Of is one client's statement with the client's name.
type Of struct {
	puntuale.Statement
	Name      string
	State     State
	Deleted   bool                     // the client
	Unlimited bool                     // the client has unlimited credits now, so sent messages take none
	ToClient  []puntuale.StatementLine // the lines as the client sees them, if a user of the partner asks; nil: the same
}

// State says how final a statement is. The states are in the order in which a month passes through them, but a month is either
// missed or closed.
type State int

const (
	Open    State = iota // the month has not ended, or [Grace] has not
	Closing              // a server closes the month next
	Missed               // no server ran when the month was to be closed, so it is counted whenever somebody asks
	Closed
)

// stateOf returns the state of a month that is not closed.
func (s *Statements) stateOf(month puntuale.Month, zone *time.Location) State {
	switch due := puntuale.MonthOf(s.cfg.Clock.Now().Add(-Grace).In(zone)).Add(-1); { // the month that [Statements.Close] closes
	case month > due:
		return Open
	case month == due:
		return Closing
	}
	return Missed
}

const (
	faultMonth  puntuale.ReasonCode = "statement.month"
	faultBefore puntuale.ReasonCode = "statement.before"
)

// errBefore: the client did not exist yet in the month.
var errBefore = errors.New("there was no account yet")

// FirstOf returns the month in which a client was created.
func (s *Statements) FirstOf(client *control.Client) puntuale.Month { return firstOf(client.Account()) }

func firstOf(c puntuale.Client) puntuale.Month { return puntuale.MonthIn(c.Created, c.Zone) }

// First returns the month in which the partner's first client was created, which may be deleted now; 0: it never had one.
func (s *Statements) First(ctx context.Context, partner *account.Partner) (puntuale.Month, error) {
	first, err := s.cfg.Tenants.Partner(partner.ID()).FirstMonth(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for the first client: %w", err)
	}
	return first, nil
}

// month reads a month that has begun in a zone.
func (s *Statements) month(text string, zone *time.Location) (puntuale.Month, error) {
	month, err := puntuale.ParseMonth(text)
	if err != nil || month > puntuale.MonthOf(s.cfg.Clock.Now().In(zone)) {
		return 0, puntuale.Invalid(puntuale.Fault{Location: "path.month", Code: faultMonth, Value: text})
	}
	return month, nil
}

// OfClient returns a client's statement of a month, such as 2026-11. Where the partner asks a price of its own, the client's
// own users and keys see only this price; the partner's users see the network's too. Codes: invalid, also if the month ended
// before the client was created.
func (s *Statements) OfClient(ctx context.Context, client *control.Client, text string) (Of, error) {
	zone, err := s.zones.Load(client.Account().Zone)
	if err != nil {
		return Of{}, fmt.Errorf("load a client's zone: %w", err)
	}
	month, err := s.month(text, zone)
	if err != nil {
		return Of{}, err
	}
	bound := openBound
	of, err := s.of(ctx, client.Account(), month, &bound)
	if errors.Is(err, errBefore) {
		return Of{}, puntuale.Invalid(puntuale.Fault{Location: "path.month", Code: faultBefore, Value: text})
	}
	switch lines := concealed(of.Statement); {
	case !client.ByPartner():
		of.Lines = lines
	case !slices.Equal(lines, of.Lines):
		of.ToClient = lines
	}
	return of, err
}

// concealed returns the lines without what the network bills for messages that have a price of the partner's: the difference
// is nobody's business but the partner's. Whether the network told, and that it bills nothing, is concealed too, so lines that
// differ only in this become one.
func concealed(s puntuale.Statement) []puntuale.StatementLine {
	kept := make([]puntuale.StatementLine, 0, len(s.Lines))
	for _, line := range s.Lines {
		if each, _ := ownEach(s, line); each != "" {
			line.Price, line.Free, line.Source = "", false, puntuale.PriceNone
		}
		if n := len(kept); n > 0 {
			last, messages := kept[n-1], line.Messages
			if line.Messages = last.Messages; line.Price == "" && line == last {
				kept[n-1].Messages += messages
				continue
			}
			line.Messages = messages
		}
		kept = append(kept, line)
	}
	return slices.DeleteFunc(kept, func(l puntuale.StatementLine) bool { return l.Messages == 0 })
}

// OfPartner returns the statements of all the partner's clients, by name. Clients that are deleted are among them if they used
// something in the month. Clients that were created later are not. A month that has begun only for some clients is empty for the
// others. At most 200,000 messages are counted, and 1,999 more. Afterwards a client whose month is not closed has no lines: it is
// incomplete if it has messages. Codes: invalid.
func (s *Statements) OfPartner(ctx context.Context, partner *account.Partner, text string) ([]Of, error) {
	month, err := s.month(text, time.FixedZone("", int(zones.Seconds())))
	if err != nil {
		return nil, err
	}
	all, bound, rest := []Of{}, openBound, partnerBound
	add := func(clients []puntuale.Client, deleted bool) error {
		for _, c := range clients {
			most := min(max(bound, chunk), rest) // so those before a client take little from it
			left := most
			one, err := s.of(ctx, c, month, &left)
			bound, rest = bound-(most-left), rest-(most-left)
			if errors.Is(err, errBefore) {
				continue
			}
			if err != nil {
				return err
			}
			one.Deleted, one.Unlimited = deleted, one.Unlimited && !deleted
			all = append(all, one)
		}
		return nil
	}
	for cursor := ""; ; {
		clients, next, err := partner.Clients(ctx, request.Page{Limit: "1000", Cursor: cursor})
		if err != nil {
			return nil, err
		}
		if err := add(clients, false); err != nil {
			return nil, err
		}
		if cursor = next; next == "" {
			break
		}
	}
	for after := puntuale.ClientID(0); ; {
		clients, err := s.cfg.Tenants.Partner(partner.ID()).DeletedClients(ctx, month, after, deletedAtOnce)
		if err != nil {
			return nil, fmt.Errorf("look for deleted clients: %w", err)
		}
		if err := add(clients, true); err != nil {
			return nil, err
		}
		if len(clients) < deletedAtOnce {
			break
		}
		after = clients[len(clients)-1].ID
	}
	slices.SortStableFunc(all, func(a, b Of) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all, nil
}

func (s *Statements) of(ctx context.Context, client puntuale.Client, month puntuale.Month, bound *int) (Of, error) {
	stored, found, err := s.cfg.Tenants.Uncounted(client.ID).Statement(ctx, month)
	if err != nil {
		return Of{}, fmt.Errorf("read a statement: %w", err)
	}
	state := Closed
	if !found {
		if month < firstOf(client) {
			return Of{}, errBefore
		}
		zone, err := s.zones.Load(client.Zone)
		if err != nil {
			return Of{}, fmt.Errorf("load a client's zone: %w", err)
		}
		state = s.stateOf(month, zone)
		c := s.counter(client.ID, client.Partner, client.Zone, zone, month, bound)
		if stored, err = c.count(ctx); err != nil {
			return Of{}, err
		}
	}
	return Of{Statement: stored, Name: client.Name, State: state, Unlimited: client.Credits == nil}, puntuale.TakeMemory(ctx, memoryOfLine*int64(1+len(stored.Lines)))
}

// Close closes the month before the present one, for all clients, as soon as [Grace] has passed in their zones. Any number
// of nodes may call it.
func (s *Statements) Close(ctx context.Context) error {
	now := s.cfg.Clock.Now()
	var problems []error
	// The month that ended last may be another one in other zones, at most half a day before or after.
	for _, at := range []time.Time{now.Add(-Grace - 14*time.Hour), now.Add(-Grace + 14*time.Hour)} {
		month := puntuale.MonthOf(at.UTC()).Add(-1)
		for after := puntuale.ClientID(0); ; {
			found, err := s.cfg.Maintenance.UnclosedMonths(ctx, month, month.Begin(time.UTC).Add(-14*time.Hour), month.Add(1).Begin(time.UTC).Add(14*time.Hour), now, after, together)
			if err != nil {
				return fmt.Errorf("close months: %w", err)
			}
			for _, u := range found {
				after = u.Client
				if err := s.closeMonth(ctx, u, month); err != nil {
					problems = append(problems, fmt.Errorf("close %v of client %d: %w", month, u.Client, err))
				}
			}
			if len(found) < together || ctx.Err() != nil {
				break
			}
		}
	}
	return errors.Join(problems...)
}

// closeMonth freezes a statement. The mark in its row has a deadline, so that another node counts it if this one stops.
func (s *Statements) closeMonth(ctx context.Context, u puntuale.UnclosedMonth, month puntuale.Month) error {
	zone, err := s.zones.Load(u.Zone)
	if err != nil {
		return fmt.Errorf("load a zone: %w", err)
	}
	now := s.cfg.Clock.Now()
	if now.Before(month.Add(1).Begin(zone).Add(Grace)) {
		return nil
	}
	tenant, until := s.cfg.Tenants.Uncounted(u.Client), now.Add(held).Truncate(time.Microsecond)
	claimed, err := tenant.ClaimStatement(ctx, month, now, until)
	if err != nil || !claimed {
		return err
	}
	c := s.counter(u.Client, u.Partner, u.Zone, zone, month, nil)
	c.to = now.Add(-settle)
	stored, err := c.count(ctx)
	if err != nil {
		return err
	}
	stored.Frozen, stored.CountedTo = now, c.to
	_, err = tenant.FreezeStatement(ctx, stored, until)
	return err
}

// monthCounter counts one month of one client.
type monthCounter struct {
	s       *Statements
	tenant  puntuale.Tenant
	partner puntuale.PartnerID
	month   puntuale.Month
	zone    *time.Location
	name    string // of the zone
	client  puntuale.ClientID
	to      time.Time // evidence from then on is not counted; zero: all is, and the month stays open
	bound   *int      // how many more messages may be counted; from 0 on, it is only asked whether there are more; nil: all
	lines   map[puntuale.StatementLine]int
	credits int64
	all     bool // all messages were read
	counted countedMessages
	before  puntuale.Statement // the month before, if it is closed
}

func (s *Statements) counter(client puntuale.ClientID, partner puntuale.PartnerID, name string, zone *time.Location, month puntuale.Month, bound *int) *monthCounter {
	return &monthCounter{s: s, tenant: s.cfg.Tenants.Uncounted(client), client: client, partner: partner, name: name, zone: zone, month: month, bound: bound, lines: map[puntuale.StatementLine]int{}, all: true}
}

func (c *monthCounter) count(ctx context.Context) (puntuale.Statement, error) {
	begin, err := c.begin(ctx)
	if err != nil {
		return puntuale.Statement{}, err
	}
	end := c.month.Add(1).Begin(c.zone)
	if err := c.read(ctx, puntuale.BilledPeriod{From: begin, To: end}, func(page []puntuale.BilledMessage) error {
		for _, m := range page {
			if m.Credit {
				c.credits++
			}
			if !m.Sandbox {
				line := lineOf(m, c.to)
				c.lines[line]++
				if !c.to.IsZero() { // only the close stores them
					c.counted.add(line, m.ID)
				}
			}
		}
		return c.keepCounted(ctx, partSize)
	}); err != nil {
		return puntuale.Statement{}, err
	}
	own, err := c.s.cfg.Tenants.Partner(c.partner).OwnPrices(ctx)
	if err != nil {
		return puntuale.Statement{}, fmt.Errorf("read own prices: %w", err)
	}
	prices := c.s.cfg.Prices
	counted := puntuale.Statement{Client: c.client, Month: c.month, Zone: c.name, Currency: prices.Currency, PricesOf: prices.Date.String(), Own: own}
	if !c.to.IsZero() { // before, corrections would cost a read of the whole month before for each look
		if err := errors.Join(c.keepCounted(ctx, 1), c.correct(ctx)); err != nil {
			return puntuale.Statement{}, err
		}
		if c.before.Month != 0 {
			counted.Before = &c.before.Own
		}
	}
	// A call counts on a day of the client's calendar, so the days are those of the month in any zone.
	first, next := puntuale.DateOf(c.month.Begin(time.UTC)), puntuale.DateOf(c.month.Add(1).Begin(time.UTC))
	if counted.Calls, err = c.tenant.Calls(ctx, first, next.AddDays(-1)); err != nil {
		return puntuale.Statement{}, fmt.Errorf("count calls: %w", err)
	}
	counted.Credits, counted.Lines, counted.Complete = c.credits, c.priced(), c.all
	return counted, nil
}

// begin returns when the month begins: where the month before ended, if that is closed. So no hour is missing or counted twice
// if the client moved to another zone.
func (c *monthCounter) begin(ctx context.Context) (time.Time, error) {
	stored, found, err := c.tenant.Statement(ctx, c.month.Add(-1))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the month before: %w", err)
	}
	if !found {
		return c.month.Begin(c.zone), nil
	}
	c.before = stored
	zone, err := c.s.zones.Load(stored.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("load the zone of the month before: %w", err)
	}
	return c.month.Begin(zone), nil
}

// read calls do for each page of the messages of a period.
func (c *monthCounter) read(ctx context.Context, p puntuale.BilledPeriod, do func([]puntuale.BilledMessage) error) error {
	for p.Limit = chunk; ; {
		enough := c.bound != nil && *c.bound <= 0
		if enough {
			p.Limit = 1
		}
		found, err := c.tenant.BilledMessages(ctx, p)
		if err != nil {
			return fmt.Errorf("count messages: %w", err)
		}
		if enough {
			c.all = len(found) == 0
			return nil
		}
		if err := do(found); err != nil {
			return err
		}
		if c.bound != nil {
			*c.bound -= len(found)
		}
		if len(found) < p.Limit {
			return nil
		}
		p.After = found[len(found)-1]
	}
}

// lineOf returns the line in which a message counts, by what was known at a moment; zero: by all that is known.
func lineOf(m puntuale.BilledMessage, known time.Time) puntuale.StatementLine {
	line := puntuale.StatementLine{Network: m.Network, Origin: m.Origin, Source: puntuale.PriceNone}
	line.Country, line.Category = cmp.Or(price.Country(m.Phone), m.Charge.Country), puntuale.CategoryService
	if m.Purpose == puntuale.PurposeMarketing {
		line.Category = marketing
	}
	if m.Network != puntuale.Official {
		return line
	}
	line.Source = puntuale.PriceEstimated
	switch {
	case m.Template != "":
		line.Category = m.Template
	case m.ChargedAt.IsZero() && m.Charge.Category != "": // kept when the content was removed
		line.Category = m.Charge.Category
	}
	if !m.ChargedAt.IsZero() && (known.IsZero() || m.ChargedAt.Before(known)) {
		line.Source, line.Category, line.Country, line.Free = puntuale.PriceReported, m.Charge.Category, cmp.Or(m.Charge.Country, line.Country), !m.Charge.Billable
	}
	return line
}

const marketing = "marketing"

// priced returns the lines with their prices, in a fixed order.
func (c *monthCounter) priced() []puntuale.StatementLine {
	lines := []puntuale.StatementLine{}
	for line, n := range c.lines {
		if line.Messages = n; n == 0 {
			continue
		}
		switch {
		case line.Free:
			line.Price = price.Sum()
		case line.Source == puntuale.PriceNone:
		case line.Month != 0:
			line.Price = c.correctionPrice(line)
		default:
			line.Price = c.s.listPrice(line)
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b puntuale.StatementLine) int {
		return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.Category, b.Category), cmp.Compare(a.Country, b.Country), cmp.Compare(a.Network, b.Network),
			cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Messages, b.Messages))
	})
	return lines
}

// listPrice returns the price of a line in the list; "": the list has none.
func (s *Statements) listPrice(line puntuale.StatementLine) string {
	text, known := s.cfg.Prices.Of(line.MessageKind, line.Messages)
	if !known {
		return ""
	}
	return text
}

// ownEach returns the partner's price of a message of a line, and its currency; "": it set none. A correction has the price
// of the month that it corrects.
func ownEach(s puntuale.Statement, line puntuale.StatementLine) (each, currency string) {
	own := s.Own
	if line.Month != 0 && s.Before != nil {
		own = *s.Before
	}
	return own.Of(line.Category), own.Currency
}

// OwnPrice returns what the partner asks for the messages of a line, in the currency of the statement's own prices; "" if it
// set no price in this currency.
func OwnPrice(s puntuale.Statement, line puntuale.StatementLine) string {
	each, currency := ownEach(s, line)
	if each == "" || currency != s.Own.Currency {
		return ""
	}
	return price.Times(each, line.Messages)
}

// Total is the sum of a statement.
type Total struct {
	Messages   int
	Price, Own string
}

// TotalOf adds the lines of a statement.
func TotalOf(s puntuale.Statement) (t Total) {
	for _, line := range s.Lines {
		t.Messages += line.Messages
		t.Price, t.Own = price.Sum(t.Price, line.Price), price.Sum(t.Own, OwnPrice(s, line))
	}
	t.Price, t.Own = price.Sum(t.Price), price.Sum(t.Own)
	return t
}

// Sum adds prices.
func Sum(prices ...string) string { return price.Sum(prices...) }

// Codes of faults in a partner's prices.
const (
	faultPrice    puntuale.ReasonCode = "statement.price"
	faultCurrency puntuale.ReasonCode = "statement.currency"
)

// OwnPrices returns what the partner asks for messages.
func (s *Statements) OwnPrices(ctx context.Context, partner *account.Partner) (puntuale.Prices, error) {
	own, err := s.cfg.Tenants.Partner(partner.ID()).OwnPrices(ctx)
	if err != nil {
		return own, fmt.Errorf("read own prices: %w", err)
	}
	return own, nil
}

// SetOwnPrices replaces what the partner asks for messages. A price of "" means none. Months that are closed keep the
// prices that they have. Codes: invalid.
func (s *Statements) SetOwnPrices(ctx context.Context, partner *account.Partner, own puntuale.Prices) error {
	var f request.Faults
	if own.Currency = strings.ToUpper(strings.TrimSpace(own.Currency)); len(own.Currency) != 3 || strings.Trim(own.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		f.Add("body.currency", faultCurrency, own.Currency)
	}
	kept := map[string]string{}
	for _, category := range slices.Sorted(maps.Keys(own.Each)) {
		text := strings.ReplaceAll(strings.TrimSpace(own.Each[category]), ",", ".")
		switch {
		case text == "":
		case !slices.Contains(puntuale.OwnCategories, category):
			f.Add("body."+category, puntuale.FaultNotOneOf, category, strings.Join(puntuale.OwnCategories, ", "))
		case price.Check(text) != nil:
			f.Add("body."+category, faultPrice, own.Each[category])
		default:
			kept[category] = text
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	own.Each = kept
	if err := s.cfg.Tenants.Partner(partner.ID()).SetOwnPrices(ctx, own); err != nil {
		return fmt.Errorf("keep own prices: %w", err)
	}
	return nil
}
