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
	cost.Rows = cost.Rows[:min(len(cost.Rows), maxRows)]
	return cost
}
