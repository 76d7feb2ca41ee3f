package web

import (
	"puntuale"
	"puntuale/internal/web/view"
)

// clientRoutes are the pages of a client's dashboard. Each noun's file brings its own part.
var clientRoutes = []route{
	{"GET /c/{client}", clientSide, puntuale.Reader, "", (*site).clientHome},
}

// clientHome is the first page of a client's dashboard.
func (s *site) clientHome(v *visit) error {
	return v.show(view.ClientHome(v.client.Account()))
}
