// Package calendar contains the pages of calendars: feeds whose entries become bookings. A person sees what was read,
// entry by entry, and starts the calendar.
package calendar

import (
	"puntuale"
	"puntuale/internal/web/page"
)

const path = "/c/{client}/calendars"

// Routes are all pages of the package.
var Routes = []page.Route{
	page.Get(path, page.ClientSide, puntuale.Reader, list),
	page.Get(path+"/new", page.ClientSide, puntuale.Staff, newCalendar),
	page.Post(path, page.ClientSide, puntuale.Staff, "calendar.create", create),
	page.Get(path+"/{id}", page.ClientSide, puntuale.Reader, show),
	page.Get(path+"/{id}/edit", page.ClientSide, puntuale.Staff, edit),
	page.Post(path+"/{id}/edit", page.ClientSide, puntuale.Staff, "calendar.change", change),
	page.Post(path+"/{id}/fetch", page.ClientSide, puntuale.Staff, page.Unaudited, fetch),
	page.Post(path+"/{id}/start", page.ClientSide, puntuale.Staff, "calendar.start", start),
	page.Post(path+"/{id}/gone", page.ClientSide, puntuale.Staff, "calendar.cancel_gone", cancelGone),
	page.Post(path+"/{id}/delete", page.ClientSide, puntuale.Staff, "calendar.delete", remove),
}
