package campaign

import (
	"puntuale"
	"puntuale/internal/plan"
)

// Prices contains the functions that compute what the messages of a campaign cost.
type Prices struct {
	Country  func(phone string) string
	Category func(*puntuale.PlannedMessage) string
	Cost     func(map[puntuale.MessageKind]int) *puntuale.CampaignCost
}

// price counts a recipient's messages by country and category.
func (c *Check) price(phone string, built plan.Plan) {
	if c.Prices == nil {
		return
	}
	country := c.Prices.Country(phone)
	for i := range built.Messages {
		c.kinds[puntuale.MessageKind{Country: country, Category: c.Prices.Category(&built.Messages[i])}]++
	}
}
