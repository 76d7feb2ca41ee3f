package web

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// whichRoutes lead to a start by hand from where no sequence is named.
var whichRoutes = []route{
	{"GET /c/{client}/start", clientSide, puntuale.Staff, "", (*site).which},
}

// which asks which sequence is to be started.
func (s *site) which(v *visit) error {
	rows, next, err := v.client.Sequences(v.ctx(), control.Page{Limit: rowsOfPage, Cursor: v.query("cursor")})
	if err != nil {
		return lost(err)
	}
	return v.show(view.WhichSequence(view.SequenceList{Rows: sequenceRows(rows), Cursor: v.query("cursor"), Next: next}))
}
