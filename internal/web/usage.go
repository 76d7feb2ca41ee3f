package web

import (
	"puntuale"
	"puntuale/internal/web/view"
)

// usageRoutes are what the client used, and has left.
var usageRoutes = []Route{
	Get("/c/{client}/usage", ClientSide, puntuale.Reader, usage),
}

func usage(v *Request) error {
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
