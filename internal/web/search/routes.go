// Package search contains the page that finds everything by one text. The same result appears in a dialog of every page
// while a person types.
package search

import (
	"puntuale"
	"puntuale/internal/web/page"
)

// Routes are all pages of the package.
var Routes = []page.Route{
	page.Get("/search", page.SignedIn, puntuale.Reader, ownSearch),
	page.Get("/c/{client}/search", page.ClientSide, puntuale.Reader, clientSearch),
	page.Get("/partner/search", page.PartnerSide, puntuale.Reader, partnerSearch),
}
