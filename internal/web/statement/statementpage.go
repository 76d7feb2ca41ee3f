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
	Month, Now puntuale.Month
	All        []statement.Of
	Form       *view.Form      // the partner's prices; nil on a client's page
	Budget     puntuale.Budget // of the client, if the page shows the present month
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

// money formats an exact amount for the reader; "": there is none. places is how many decimals it has at least.
func money(ctx context.Context, amount, currency string, places int) string {
	if amount == "" || currency == "" {
		return "–"
	}
	return view.Decimal(ctx, amount, places) + "\u00a0" + currency
}

// places returns how many decimals the longest of a table's amounts has.
func places(all []Of) (most int) {
	for _, s := range all {
		for _, l := range s.Lines {
			for _, amount := range []string{l.Price, statement.OwnPrice(s.Statement, l)} {
				_, decimals, _ := strings.Cut(amount, ".")
				most = max(most, len(decimals))
			}
		}
	}
	return most
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
func own(ctx context.Context, s statement.Of, l puntuale.StatementLine, places int) string {
	return money(ctx, statement.OwnPrice(s.Statement, l), s.Own.Currency, places)
}

// estimated reports whether the network has not told yet what it bills for some of the lines.
func (p Page) estimated() bool {
	for _, s := range p.All {
		for _, l := range s.Lines {
			if l.Source == puntuale.PriceEstimated && !ownOnly(s, l) {
				return true
			}
		}
	}
	return false
}

// networkPriced reports whether a page of a client has what the network bills. It has not if the reader may see only the
// partner's own prices.
func networkPriced(s Of) bool {
	return len(s.Lines) == 0 || slices.ContainsFunc(s.Lines, func(l puntuale.StatementLine) bool { return !ownOnly(s, l) })
}

// ownOnly reports whether a line has no other price than the partner's own.
func ownOnly(s Of, l puntuale.StatementLine) bool {
	return l.Price == "" && !l.Free && statement.OwnPrice(s.Statement, l) != ""
}

// frozen reports whether the month is closed for all clients.
func (p Page) frozen() bool {
	for _, s := range p.All {
		if s.Frozen.IsZero() {
			return false
		}
	}
	return len(p.All) > 0
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
