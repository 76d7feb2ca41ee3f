package web

import (
	"slices"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// clientRoutes are the pages of a client's dashboard. Each noun's file brings its own part.
var clientRoutes = slices.Concat([]route{
	{"GET /c/{client}", clientSide, puntuale.Reader, "", (*site).home},
	{"GET /c/{client}/audit", clientSide, puntuale.Owner, "", (*site).clientAudit},
}, messageRoutes, bulkRoutes, calendarRoutes, phoneRoutes)

// clientAudit is what was done in the client's dashboard.
func (s *site) clientAudit(v *visit) error {
	rows, next, err := v.client.Audit(v.ctx(), control.Page{Limit: rowsOfPage, Cursor: v.query("cursor")})
	if err != nil {
		return lost(err)
	}
	return v.show(view.Audit(rows, v.frame.Place.Base+"/audit", v.query("cursor"), next))
}
