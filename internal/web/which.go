package web

import (
	"puntuale"
	"puntuale/internal/web/view"
)

// whichRoutes lead to a start by hand from where no sequence is named.
var whichRoutes = []Route{
	Get("/c/{client}/start", ClientSide, puntuale.Staff, which),
}

// which asks which sequence is to be started. To htmx, which asks while one types, it is the list alone.
func which(v *Request) error {
	l, err := sequenceList(v, "/start")
	if err != nil {
		return err
	}
	if l.Long() {
		recent, err := v.client.LastStarted(v.ctx(), recentRows)
		if err != nil {
			return err
		}
		l.Recent = sequenceRows(recent)
	}
	if v.partial() {
		return v.show(view.SequenceChoice(l))
	}
	return v.show(view.WhichSequence(l))
}

// recentRows is how many sequences that were started lately stand above all others.
const recentRows = 5
