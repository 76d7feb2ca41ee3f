package web

import (
	"puntuale"
	"puntuale/internal/web/page"
)

// Row is a row of the table of routes, for use in tests.
type Row struct {
	Method, Path, Side, Audit string
	Role                      puntuale.Role
}

// Routes returns the table of routes.
func Routes() (all []Row) {
	names := map[page.Side]string{page.Anyone: "anyone", page.SignedIn: "person", page.PartnerSide: "partner", page.ClientSide: "client"}
	for _, r := range allRoutes() {
		all = append(all, Row{r.Method(), r.Path(), names[r.Side], r.Audit, r.Role})
	}
	return all
}
