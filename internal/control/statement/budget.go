package statement

import (
	"context"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
)

// BudgetStore keeps the budgets of clients.
type BudgetStore interface {
	// Budget returns a client's budget; Amount 0: it has none.
	Budget(ctx context.Context, client puntuale.ClientID) (puntuale.Budget, error)
	// SetBudget sets the amount and currency of a client's budget. Amount 0 removes it. Codes: not_found.
	SetBudget(ctx context.Context, client puntuale.ClientID, amount int64, currency string, now time.Time) error
}

// Currency returns the currency of the list of prices, in which budgets are.
func (s *Statements) Currency() string { return s.cfg.Prices.Currency }

// Priced returns what the network bills for a message, as a statement prices it, in millionths of the currency. known is
// false if the list has no price for it.
func (s *Statements) Priced(m puntuale.BilledMessage) (amount int64, known bool) {
	line := lineOf(m, time.Time{})
	if line.Free || line.Source == puntuale.PriceNone {
		return 0, true
	}
	return s.cfg.Prices.Each(line.MessageKind)
}

// Budget returns a client's own budget; Amount 0: it has none. A budget is in the network's prices. So if the partner asks a price
// of its own, the client itself sees only what part of the budget is used.
func (s *Statements) Budget(ctx context.Context, client *control.Client) (puntuale.Budget, error) {
	b, err := s.budget(ctx, client.Account().ID)
	if err != nil || client.ByPartner() {
		return b, err
	}
	own, err := client.OwnPrices(ctx)
	if len(own.Each) > 0 {
		b.Hide()
	}
	return b, err
}

// BudgetOf returns the budget of a partner's client; Amount 0: it has none. Codes: not_found.
func (s *Statements) BudgetOf(ctx context.Context, partner *account.Partner, id string) (puntuale.Budget, error) {
	found, err := partner.Account(ctx, id)
	if err != nil {
		return puntuale.Budget{}, err
	}
	return s.budget(ctx, found.ID)
}

func (s *Statements) budget(ctx context.Context, id puntuale.ClientID) (puntuale.Budget, error) {
	b, err := s.cfg.Budgets.Budget(ctx, id)
	if err != nil {
		return b, fmt.Errorf("read a budget: %w", err)
	}
	b.Counted = b.Counted && b.Currency == s.Currency() // the list was replaced by one in another currency, so nothing is counted
	return b, nil
}

// SetBudget sets what the messages of a partner's client may cost in a month, such as 50 or 49,90, in the currency of the
// list of prices. "" means no budget. Codes: not_found, invalid.
func (s *Statements) SetBudget(ctx context.Context, partner *account.Partner, id, amount string, faults ...puntuale.Fault) (puntuale.Budget, error) {
	found, err := partner.Account(ctx, id)
	if err != nil {
		return puntuale.Budget{}, err
	}
	f, millionths := request.Faults(faults), int64(0)
	if text := strings.ReplaceAll(strings.TrimSpace(amount), ",", "."); text != "" {
		if millionths, err = puntuale.ParseMoney(text); err != nil || millionths == 0 {
			f.Add("body.amount", account.FaultBudget, amount, puntuale.Money(puntuale.MaxBudget))
		}
	}
	if err := f.Err(); err != nil {
		return puntuale.Budget{}, err
	}
	if err := s.cfg.Budgets.SetBudget(ctx, found.ID, millionths, s.Currency(), s.cfg.Clock.Now()); err != nil {
		return puntuale.Budget{}, fmt.Errorf("set a budget: %w", err)
	}
	return s.budget(ctx, found.ID)
}
