package sequence

import (
	"puntuale"
	"puntuale/internal/web/page"
)

// whichRoutes lead to a start by hand from where no sequence is named.
var whichRoutes = []page.Route{
	page.Get("/c/{client}/start", page.ClientSide, puntuale.Staff, which),
}

// which asks which sequence is to be started. To htmx, which asks while one types, it is the list alone.
func which(v *page.Request) error {
	l, err := sequenceList(v, "/start")
	if err != nil {
		return err
	}
	if l.Long() {
		recent, err := v.Client.LastStarted(v.Ctx(), recentRows)
		if err != nil {
			return err
		}
		l.Recent = sequenceRows(recent)
	}
	if v.Partial() {
		return v.Show(SequenceChoice(l))
	}
	return v.Show(WhichSequence(l))
}

// recentRows is how many sequences that were started lately stand above all others.
const recentRows = 5
