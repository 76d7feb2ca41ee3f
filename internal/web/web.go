package web

import (
	"net/http"
	"puntuale/internal/web/page"
	"puntuale/internal/web/static"
)

// New returns the handler of all pages.
func New(cfg page.Config) (http.Handler, error) { return page.NewHandler(cfg, allRoutes()) }

// allRoutes is the one table. Each noun's file brings its part.
func allRoutes() (all []page.Route) {
	for _, part := range [][]page.Route{signinRoutes, invitationRoutes, profileRoutes, page.BrandRoutes, assistedRoutes, partnerRoutes, accountRoutes, teamRoutes, homeRoutes, auditRoutes, messageRoutes, bulkRoutes, calendarRoutes, phoneRoutes, whichRoutes, sessionRoutes, deviceRoutes, officialRoutes, gatewayRoutes, blacklistRoutes, campaignRoutes, keyRoutes, usageRoutes, sequenceRoutes, startRoutes, exportRoutes, templateRoutes, unknownRoutes} {
		all = append(all, part...)
	}
	return all
}

// Patterns are the patterns of all pages, as net/http writes them, and of what pages load.
func Patterns() []string {
	all := []string{http.MethodGet + " " + static.Path}
	for _, r := range allRoutes() {
		all = append(all, r.Pattern)
	}
	return all
}
