package statement

import (
	"context"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/statement"
	"puntuale/internal/web/view"
)

// Of is one client's statement. The templates use this name, because templates must not import control.
type Of = statement.Of

func totalOf(s Of) statement.Total { return statement.TotalOf(s.Statement) }

// Page is what the pages of statements show.
type Page struct {
	Address    string // of the page without its query
	Name       string // of the client; "": the page is about all clients
	Month, Now puntuale.Month
	First      puntuale.Month  // in which the client was created, or the first one; 0: there was none
	All        []statement.Of  // empty on a client's page: the month ended before First
	Form       *view.Form      // the partner's prices; nil on a client's page
	Priced     bool            // the partner has prices of its own now
	Budget     puntuale.Budget // of the client, if the page shows the present month
}

// before reports whether the month ended before there was an account.
func (p Page) before() bool { return len(p.All) == 0 && p.Month < p.First }

// earlier reports whether there was an account in the month before.
func (p Page) earlier() bool { return p.First != 0 && p.Month > p.First }

// next is the next month in which there was an account.
func (p Page) next() puntuale.Month { return max(p.Month.Add(1), p.First) }

// concealing reports whether a user of the partner sees on a client's page what the client does not.
func (p Page) concealing() bool {
	return slices.ContainsFunc(p.All, func(s Of) bool { return s.ToClient != nil }) || p.Budget.Amount > 0 && !p.Budget.Hidden && p.ownPriced()
}

// asClient returns a client's page as the client itself sees it.
func (p Page) asClient() Page {
	if p.ownPriced() {
		p.Budget.Hide()
	}
	p.All = slices.Clone(p.All)
	for i := range p.All {
		if s := &p.All[i]; s.ToClient != nil {
			s.Lines, s.ToClient = s.ToClient, nil
		}
	}
	return p
}

// at returns the address of the page, or of its file, of another month.
func (p Page) at(path string, m puntuale.Month) string {
	return p.Address + path + "?month=" + m.String()
}

// title returns the name of a month, such as "novembre 2026".
func title(ctx context.Context, m puntuale.Month) string {
	return view.FrameOf(ctx).Language.Month(m.Begin(time.UTC))
}

// lines returns the lines of the month itself, or those that correct another month.
func lines(s statement.Of, corrections bool) (all []puntuale.StatementLine) {
	for _, l := range s.Lines {
		if (l.Month != 0) == corrections {
			all = append(all, l)
		}
	}
	return all
}

func category(ctx context.Context, l puntuale.StatementLine) string {
	return view.Or(view.KnownWord(view.T(ctx, "campaign.category."+l.Category), l.Category), "?")
}

func origin(ctx context.Context, l puntuale.StatementLine) string {
	return view.T(ctx, "origin."+strings.ToLower(string(l.Origin)))
}

// networkKey is the text key of a connection type.
func networkKey(t puntuale.ConnectionType) string {
	return "statement.network." + strings.ToLower(string(t))
}

// own returns what the partner asks for the messages of a line.
func own(ctx context.Context, s statement.Of, l puntuale.StatementLine) string {
	return view.Amount(ctx, statement.OwnPrice(s.Statement, l), s.Own.Currency)
}

// credits says how many credits messages took. They take none while credits are unlimited.
func credits(ctx context.Context, s Of) string {
	if s.Unlimited && s.Credits == 0 {
		return view.T(ctx, "statement.unlimited")
	}
	return view.Number(ctx, s.Credits)
}

// priceLabel names the field of a price with its currency.
func priceLabel(ctx context.Context, f *view.Form, category string) string {
	label := view.T(ctx, "campaign.category."+category)
	if currency := strings.ToUpper(strings.TrimSpace(f.Value("currency"))); currency != "" {
		label += " (" + currency + ")"
	}
	return label
}

// estimated reports whether the network has not told yet what it bills for some of the lines.
func (p Page) estimated() bool {
	for _, s := range p.All {
		for _, l := range s.Lines {
			if l.Source == puntuale.PriceEstimated {
				return true
			}
		}
	}
	return false
}

// networkPriced reports whether a page of a client has what the network bills. It has not if the reader may see only the
// partner's own prices, or if no network bills single messages.
func networkPriced(s Of) bool {
	return slices.ContainsFunc(s.Lines, func(l puntuale.StatementLine) bool { return l.Source != puntuale.PriceNone })
}

// ownPriced reports whether the partner asks a price of its own for something.
func ownPriced(s Of) bool {
	return len(s.Own.Each) > 0 || slices.ContainsFunc(s.Lines, func(l puntuale.StatementLine) bool { return statement.OwnPrice(s.Statement, l) != "" })
}

// ownPriced reports whether the partner asks a price of its own in one of the statements.
func (p Page) ownPriced() bool { return slices.ContainsFunc(p.All, ownPriced) }

// rounded reports whether a line has an amount with more decimals than the page shows.
func (p Page) rounded() bool {
	for _, s := range p.All {
		for _, l := range s.Lines {
			for _, amount := range []string{l.Price, statement.OwnPrice(s.Statement, l)} {
				if _, decimals, _ := strings.Cut(amount, "."); len(decimals) > 2 {
					return true
				}
			}
		}
	}
	return false
}

// ownOnly reports whether a line says nothing of what the network bills, because the partner asks a price of its own.
func ownOnly(s Of, l puntuale.StatementLine) bool {
	own := s.Own
	if l.Month != 0 && s.Before != nil {
		own = *s.Before
	}
	return l.Source == puntuale.PriceNone && own.Of(l.Category) != ""
}

// state is that of the least final statement.
func (p Page) state() statement.State {
	least := statement.Closed
	for _, s := range p.All {
		least = min(least, s.State)
	}
	return least
}

// stateKeys are the text keys of the state, and of the sentence about it.
func (p Page) stateKeys() [2]string {
	switch p.state() {
	case statement.Open:
		return [2]string{"statement.open", "statement.open_text"}
	case statement.Closing:
		return [2]string{"statement.closing", "statement.closing_text"}
	case statement.Missed:
		return [2]string{"statement.missed", "statement.missed_text"}
	default:
		return [2]string{"statement.frozen", "statement.frozen_text"}
	}
}

func (p Page) tone() string {
	if p.state() == statement.Closed {
		return "ok"
	}
	return "wait"
}

// complete reports whether all messages were counted.
func (p Page) complete() bool {
	for _, s := range p.All {
		if !s.Complete {
			return false
		}
	}
	return true
}

// sums returns the sum of all statements, and the currencies.
func (p Page) sums() (t statement.Total, currency, ownCurrency string) {
	for _, s := range p.All {
		one := statement.TotalOf(s.Statement)
		t.Messages += one.Messages
		t.Price, t.Own = statement.Sum(t.Price, one.Price), statement.Sum(t.Own, one.Own)
		currency, ownCurrency = s.Currency, s.Own.Currency
	}
	return t, currency, ownCurrency
}

// dayOf formats the date of a list of prices for the reader.
func dayOf(ctx context.Context, day string) string {
	d, err := puntuale.ParseDate(day)
	if err != nil {
		return day
	}
	return view.FrameOf(ctx).Language.Day(d)
}
