package web

import (
	"net/http"
	"slices"

	"puntuale/internal/web/account"
	"puntuale/internal/web/automation"
	"puntuale/internal/web/booking"
	"puntuale/internal/web/calendar"
	"puntuale/internal/web/campaign"
	"puntuale/internal/web/confirm"
	"puntuale/internal/web/file"
	"puntuale/internal/web/link"
	"puntuale/internal/web/message"
	"puntuale/internal/web/page"
	"puntuale/internal/web/person"
	"puntuale/internal/web/result"
	"puntuale/internal/web/search"
	"puntuale/internal/web/sequence"
	"puntuale/internal/web/session"
	"puntuale/internal/web/signin"
	"puntuale/internal/web/statement"
	"puntuale/internal/web/static"
	"puntuale/internal/web/webhook"
)

// New returns the handler of all pages.
func New(cfg page.Config) (http.Handler, error) { return page.NewHandler(cfg, allRoutes()) }

// allRoutes returns the table of all routes. Each feature adds its part.
func allRoutes() []page.Route {
	return slices.Concat(signin.Routes, page.BrandRoutes, account.Routes, session.Routes, message.Routes, sequence.Routes, campaign.Routes, automation.Routes, booking.Routes, calendar.Routes, person.Routes, webhook.Routes, result.Routes, search.Routes, statement.Routes, confirm.Routes, file.Routes, link.Routes)
}

// Patterns returns the net/http patterns of all pages, and of the files that pages load.
func Patterns() []string {
	all := []string{http.MethodGet + " " + static.Path}
	for _, r := range allRoutes() {
		all = append(all, r.Pattern)
	}
	return all
}
