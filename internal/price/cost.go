package price

import (
	"cmp"
	"slices"

	"puntuale"
)

// maxRows bounds the rows of a cost.
const maxRows = 20

// Cost returns the cost of messages. counts contains the number of messages of each kind.
func (t *Table) Cost(counts map[puntuale.MessageKind]int) *puntuale.CampaignCost {
	cost := &puntuale.CampaignCost{Currency: t.Currency, Date: t.Date.String()}
	var total amount
	for kind, n := range counts {
		row := puntuale.CostRow{MessageKind: kind, Messages: n}
		if price, known := t.prices[kind]; known {
			sum := price * amount(n)
			total += sum
			row.Amount = sum.String()
		} else {
			cost.Unknown += n
		}
		cost.Rows = append(cost.Rows, row)
	}
	cost.Amount = total.String()
	slices.SortFunc(cost.Rows, func(a, b puntuale.CostRow) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Country, b.Country), cmp.Compare(a.Category, b.Category))
	})
	if len(cost.Rows) > maxRows {
		cost.Rows, cost.Rest = cost.Rows[:maxRows], byCategory(cost.Rows[maxRows:])
	}
	return cost
}

// byCategory adds rows of one category. Those with a price, and those without, stay apart.
func byCategory(rows []puntuale.CostRow) (sums []puntuale.CostRow) {
	for _, r := range rows {
		at := slices.IndexFunc(sums, func(s puntuale.CostRow) bool { return s.Category == r.Category && (s.Amount == "") == (r.Amount == "") })
		if at < 0 {
			r.Country = ""
			sums = append(sums, r)
			continue
		}
		sums[at].Messages += r.Messages
		if r.Amount != "" {
			sums[at].Amount = Sum(sums[at].Amount, r.Amount)
		}
	}
	return sums
}

// AtOwn returns a cost as a client sees it whose partner asks its own prices: where there is one, it is the message's price.
// The other messages keep the network's, if both are in one currency; else they count as messages without a price.
func AtOwn(cost *puntuale.CampaignCost, own puntuale.Prices) *puntuale.CampaignCost {
	at := puntuale.CampaignCost{Currency: own.Currency, Date: cost.Date}
	var sums []string
	reprice := func(rows []puntuale.CostRow) []puntuale.CostRow {
		rows = slices.Clone(rows)
		for i := range rows {
			r := &rows[i]
			switch each := own.Of(r.Category); {
			case each != "" && r.Category != "":
				at.Own, r.Amount = true, Times(each, r.Messages)
			case own.Currency != cost.Currency:
				r.Amount = ""
			}
			if r.Amount == "" {
				at.Unknown += r.Messages
			}
			sums = append(sums, r.Amount)
		}
		return rows
	}
	at.Rows, at.Rest = reprice(cost.Rows), reprice(cost.Rest)
	if at.Amount = Sum(sums...); !at.Own {
		return cost
	}
	return &at
}
