package web

import (
	"slices"

	"puntuale"
)

// clientRoutes are the pages of a client's dashboard. Each noun's file brings its own part.
var clientRoutes = slices.Concat([]route{
	{"GET /c/{client}", clientSide, puntuale.Reader, "", home},
	{"GET /c/{client}/audit", clientSide, puntuale.Owner, "", clientAudit},
}, messageRoutes, bulkRoutes, calendarRoutes, phoneRoutes, whichRoutes)
