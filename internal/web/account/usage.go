package account

import (
	"puntuale"
	"puntuale/internal/web/page"
)

// usageRoutes are the pages that show what the client used, and how much is left.
var usageRoutes = []page.Route{
	page.Get("/c/{client}/usage", page.ClientSide, puntuale.Reader, usage),
}

func usage(v *page.Request) error {
	pulse, err := v.Client.Pulse(v.Ctx())
	if err != nil {
		return err
	}
	days, err := v.Client.Totals(v.Ctx(), daysBack, daysAhead)
	if err != nil {
		return err
	}
	budget, err := v.Site.Statements.Budget(v.Ctx(), v.Client)
	if err != nil {
		return err
	}
	return v.Show(Usage(v.Client.Account(), pulse, days, budget, v.Site.Statements.Currency()))
}
