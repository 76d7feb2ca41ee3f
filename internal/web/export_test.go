package web

import "puntuale"

// Row is a row of the table of routes, for tests.
type Row struct {
	Method, Path, Side, Audit string
	Role                      puntuale.Role
}

// Routes is the table.
func Routes() (all []Row) {
	names := map[Side]string{Anyone: "anyone", SignedIn: "person", PartnerSide: "partner", ClientSide: "client"}
	for _, r := range allRoutes() {
		all = append(all, Row{r.Method(), r.Path(), names[r.Side], r.Audit, r.Role})
	}
	return all
}
