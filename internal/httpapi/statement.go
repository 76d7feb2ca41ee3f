package httpapi

import (
	"cmp"
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/statement"
)

func registerStatements(a *api) {
	register(a, eitherSide, operation{id: "getStatement", method: http.MethodGet, path: "/api/statements/{month}", strict: true,
		summary: "Get what was used in a month: messages by category and country, with what the network bills",
		description: "The client's own with its key, those of all clients with a partner's key. A month is closed three days after its end, in the client's zone. Then it never changes: " +
			"what becomes known later is a correction in the next month. Where the partner set its own price, a client's key gets only this one, and not what the network bills. Messages of the simulated network are left out. A month that ended before the client was created is invalid; a partner's answer leaves out clients that were created later."}, a.statement)
}

// registerBudgets adds the calls about budgets.
func registerBudgets(a *api) {
	const text = " Meta's prices count, as in statements: what Meta told, and else an estimate. At 80 percent people are warned. When it is used up, marketing waits until the next month, or until the budget is raised; everything else leaves."
	missing := []int{http.StatusNotFound}
	client(a, operation{id: "getOwnBudget", method: http.MethodGet, path: "/api/budget", strict: true, summary: "Get the client's budget of the month, and what is spent", description: text[1:]}, a.ownBudget)
	partner(a, operation{id: "getBudget", method: http.MethodGet, path: "/api/client/{id_client}/budget", strict: true, summary: "Get a client's budget of the month, and what is spent", refusals: missing}, a.budget)
	partner(a, operation{id: "setBudget", method: http.MethodPut, path: "/api/client/{id_client}/budget", body: budgetBody{}, strict: true, prevents: true,
		summary: "Set what a client's messages may cost in a month", description: "In the currency of the list of prices." + text, refusals: missing}, withBody(a.setBudget))
}

// budgetBody is a budget as a partner sets it.
type budgetBody struct {
	Amount nullableMember[string] `json:"amount" nullable:"true" doc:"Such as 49.90; null: no budget"`
	_      amountCheck
	_      closedCheck
}

// amountCheck adds a fault if a budget has no amount. Null means that there is none.
type amountCheck struct{}

func (amountCheck) check(o *object, to any) {
	if !to.(*budgetBody).Amount.Set {
		o.refuse("amount", puntuale.FaultRequired, nil)
	}
}

type budgetAnswer struct {
	Amount   *string `json:"amount" doc:"An exact decimal number; null: no budget, and nothing is counted. Or the client asks, and the partner has its own prices: then month is not null"`
	Currency string  `json:"currency"`
	Spent    *string `json:"spent" doc:"What the month's messages cost so far, an exact decimal number. Estimated, until Meta tells what it bills. null: the client asks, and the partner has its own prices"`
	Percent  int     `json:"percent" doc:"The part of the budget that is spent"`
	Unpriced int64   `json:"unpriced" doc:"Messages for which the list has no price. They are not in spent"`
	Month    *string `json:"month" doc:"In the client's zone"`
	Ends     *string `json:"ends_at" format:"date-time" doc:"When the next month begins"`
	Counted  bool    `json:"counted" doc:"false: messages that left before the budget was set are still being counted"`
	UsedUp   bool    `json:"used_up" doc:"true: marketing waits until ends_at"`
}

func (a *api) budgetOf(b puntuale.Budget) budgetAnswer {
	answer := budgetAnswer{Currency: cmp.Or(b.Currency, a.statements.Currency()), Spent: new(puntuale.Money(b.Spent)), Percent: b.Percent(), Unpriced: b.Unpriced, Counted: b.Counted, UsedUp: b.Used()}
	if b.Amount > 0 {
		answer.Amount, answer.Month, answer.Ends = new(puntuale.Money(b.Amount)), new(b.Month.String()), stampOrNull(b.Ends)
	}
	if b.Hidden {
		answer.Amount, answer.Spent = nil, nil
	}
	return answer
}

func (a *api) ownBudget(ctx context.Context, c *control.Client, _ *call, _ *struct{}) (budgetAnswer, error) {
	b, err := a.statements.Budget(ctx, c)
	return a.budgetOf(b), err
}

func (a *api) budget(ctx context.Context, p *account.Partner, _ *call, in *snapshotInput) (budgetAnswer, error) {
	b, err := a.statements.BudgetOf(ctx, p, in.ID)
	return a.budgetOf(b), err
}

func (a *api) setBudget(ctx context.Context, p *account.Partner, in *call, q *snapshotInput, body *budgetBody) (budgetAnswer, error) {
	amount := ""
	if body.Amount.To != nil {
		amount = cmp.Or(*body.Amount.To, "0") // only null means no budget
	}
	b, err := a.statements.SetBudget(ctx, p, q.ID, amount, in.refused...)
	return a.budgetOf(b), err
}

type statementInput struct {
	Month string `path:"month" pattern:"^[0-9]{4}-(0[1-9]|1[0-2])$" doc:"Year and month, such as 2026-11"`
}

// statementAnswer is what was used in a month.
type statementAnswer struct {
	Month   string            `json:"month"`
	Lines   []statementLine   `json:"lines"`
	Clients []statementClient `json:"clients"`
	Totals  statementTotals   `json:"totals" doc:"Of all lines"`
	Frozen  bool              `json:"frozen" doc:"true: the month is closed for all clients of the answer"`
}

type statementLine struct {
	Client   string  `json:"client" doc:"ID of the client"`
	Category string  `json:"category" doc:"The network's word, such as marketing, utility, authentication, service"`
	Country  *string `json:"country" doc:"Of the recipient, two letters; null: unknown"`
	Network  string  `json:"network" doc:"The connection type of the session: Official, Socket, and so on"`
	Origin   string  `json:"origin" enum:"SINGLE,SEQUENCE,MASSIVE,AUTOMATION"`
	Messages int     `json:"messages" doc:"Negative in a correction that takes messages back"`
	Price    *string `json:"price" doc:"Of all messages, an exact decimal number; null: no price is known, the network bills nothing, or the client asks and the partner has its own price"`
	Currency string  `json:"currency" doc:"Of price"`
	Source   string  `json:"source" enum:"reported,estimated,none" doc:"reported: the network told the category, and whether it bills. estimated: it did not yet. none: the network bills nothing for messages, or the client asks and the partner has its own price"`
	Free     bool    `json:"free" doc:"true: the network told that it bills nothing. A client's key gets false where the partner has its own price"`
	Corrects *string `json:"corrects" doc:"The month that this line corrects; null: the line is of this month"`
	OwnPrice *string `json:"own_price" doc:"What the partner asks for these messages; null: it set no price"`
}

type statementClient struct {
	Client   string  `json:"client"`
	Name     string  `json:"name"`
	Timezone string  `json:"timezone"`
	Calls    int64   `json:"calls" doc:"Calls of the API, from the first to the last day of the month in the client's zone. Those of today count at once"`
	Credits  int64   `json:"credits" doc:"Credits that sent messages took, those of the simulated network too. Messages that leave while credits are unlimited take none"`
	PricesOf string  `json:"prices_of" format:"date" doc:"The date of Meta's list of prices"`
	Frozen   *string `json:"frozen_at" format:"date-time" doc:"null: the month is not closed"`
	Complete bool    `json:"complete" doc:"false: there are more messages than are counted before the month is closed"`
}

type statementTotals struct {
	Messages    int     `json:"messages"`
	Price       string  `json:"price" doc:"Of the lines that have a price in this answer"`
	Currency    string  `json:"currency"`
	OwnPrice    string  `json:"own_price"`
	OwnCurrency *string `json:"own_currency" doc:"null: the partner set no prices"`
}

func (a *api) statement(ctx context.Context, in *call, p *statementInput) (statementAnswer, error) {
	if len(in.unknown) > 0 {
		return statementAnswer{}, puntuale.Invalid(in.unknown...)
	}
	ctx = in.unhurried(ctx)
	if in.partner != nil {
		all, err := a.statements.OfPartner(ctx, in.partner, p.Month)
		return statementAnswerOf(p.Month, all), err
	}
	one, err := a.statements.OfClient(ctx, in.client, p.Month)
	return statementAnswerOf(p.Month, []statement.Of{one}), err
}

func statementAnswerOf(month string, all []statement.Of) statementAnswer {
	answer := statementAnswer{Month: month, Lines: []statementLine{}, Clients: []statementClient{}, Frozen: len(all) > 0, Totals: statementTotals{Price: "0.00", OwnPrice: "0.00"}}
	for _, s := range all {
		client := s.Client.String()
		answer.Clients = append(answer.Clients, statementClient{client, s.Name, s.Zone, s.Calls, s.Credits, s.PricesOf, stampOrNull(s.Frozen), s.Complete})
		answer.Frozen = answer.Frozen && !s.Frozen.IsZero()
		answer.Totals.Currency, answer.Totals.OwnCurrency = s.Currency, textOrNull(s.Own.Currency)
		for _, line := range s.Lines {
			corrects := ""
			if line.Month != 0 {
				corrects = line.Month.String()
			}
			answer.Lines = append(answer.Lines, statementLine{
				Client: client, Category: line.Category, Country: textOrNull(line.Country), Network: string(line.Network), Origin: string(line.Origin), Messages: line.Messages,
				Price: textOrNull(line.Price), Currency: s.Currency, Source: string(line.Source), Free: line.Free, Corrects: textOrNull(corrects), OwnPrice: textOrNull(statement.OwnPrice(s.Statement, line)),
			})
		}
		total := statement.TotalOf(s.Statement)
		answer.Totals.Messages += total.Messages
		answer.Totals.Price, answer.Totals.OwnPrice = statement.Sum(answer.Totals.Price, total.Price), statement.Sum(answer.Totals.OwnPrice, total.Own)
	}
	return answer
}
