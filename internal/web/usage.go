package web

import (
	"puntuale"
	"puntuale/internal/web/view"
)

// usageRoutes are what the client used, and has left.
var usageRoutes = []route{
	get("/c/{client}/usage", clientSide, puntuale.Reader, usage),
}

func usage(v *visit) error {
	pulse, err := v.client.Pulse(v.ctx())
	if err != nil {
		return err
	}
	days, err := v.client.Totals(v.ctx(), daysBack, daysAhead)
	if err != nil {
		return err
	}
	return v.show(view.Usage(v.client.Account(), pulse, days))
}
