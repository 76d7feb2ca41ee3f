package sequence

import (
	"puntuale"
	"puntuale/internal/web/page"
)

// whichRoutes are the pages on which a person chooses a sequence to start.
var whichRoutes = []page.Route{
	page.Get("/c/{client}/start", page.ClientSide, puntuale.Staff, choicePage),
}

// choicePage asks which sequence to start. While a person types a search, htmx sends the request again, and choicePage
// sends only the list.
func choicePage(v *page.Request) error {
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

// recentRows is the number of recently started sequences that are shown above the list.
const recentRows = 5
