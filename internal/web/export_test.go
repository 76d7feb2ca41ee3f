package web

import "puntuale"

// Route is a row of the table of routes, for tests.
type Route struct {
	Method, Path, Side, Audit string
	Role                      puntuale.Role
}

// Routes is the table.
func Routes() (all []Route) {
	names := map[side]string{anyone: "anyone", person: "person", partnerSide: "partner", clientSide: "client"}
	for _, r := range allRoutes() {
		all = append(all, Route{r.method(), r.path(), names[r.side], r.audit, r.role})
	}
	return all
}
