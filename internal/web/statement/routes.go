// Package statement contains the pages with what clients used in a month, and what is billed for it. They are made to be
// printed.
package statement

import (
	"puntuale"
	"puntuale/internal/web/page"
)

// Routes are all pages of the package.
var Routes = []page.Route{
	page.Get("/c/{client}/statements", page.ClientSide, puntuale.Reader, clientStatement),
	page.Get("/c/{client}/statements/export", page.ClientSide, puntuale.Reader, exportClient),
	page.Get("/partner/statements", page.PartnerSide, puntuale.Reader, partnerStatements),
	page.Get("/partner/statements/export", page.PartnerSide, puntuale.Reader, exportPartner),
	page.Post("/partner/statements/prices", page.PartnerSide, puntuale.Owner, "statement.prices", setPrices),
}
