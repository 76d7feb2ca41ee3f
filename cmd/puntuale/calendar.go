package main

import (
	"context"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/calendar"
	control "puntuale/internal/control/calendar"
	"puntuale/internal/delivery"
	"puntuale/internal/media"
)

// openCalendars makes the part that executes requests about calendars.
func (s *server) openCalendars(cfg *serverConfig, vault *auth.Vault) *control.Calendars {
	allowed, _ := networksOf(cfg.CalendarAllow) // the check of the settings has already parsed these networks
	addresses := delivery.NewCaller(delivery.CallerConfig{Clock: cfg.Clock, Logger: cfg.Logger, Allow: allowed, Memory: s.payer()})
	return control.New(control.Config{Control: s.control, Tenants: s.store, Vault: vault, Clock: cfg.Clock, Refuses: addresses.Refuses})
}

// newCalendarReader makes the part that reads the calendars that are due.
func (s *server) newCalendarReader(cfg *serverConfig) *calendar.Reader {
	allowed, _ := networksOf(cfg.CalendarAllow)
	return calendar.NewReader(calendar.Config{
		Store: s.store, Node: s.dispatch.Node, Feeds: media.Transport(allowed), Memory: s.payer(), Clock: cfg.Clock, Logger: cfg.Logger, Address: s.calendar.Address,
		Account: func(ctx context.Context, id puntuale.ClientID) (calendar.Account, error) {
			return s.calendar.Account(ctx, id)
		},
	})
}
