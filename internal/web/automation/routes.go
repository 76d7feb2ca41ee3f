// Package automation contains the pages of automations: the list, the editor, trials, and the log. The editor shows a
// rule as a sentence that contains fields.
package automation

import (
	"puntuale"
	"puntuale/internal/web/page"
)

const path = "/c/{client}/automations"

// Routes are all pages of the package.
var Routes = []page.Route{
	page.Get(path, page.ClientSide, puntuale.Reader, list),
	page.Get(path+"/new", page.ClientSide, puntuale.Staff, newRule),
	page.Post(path+"/draft", page.ClientSide, puntuale.Staff, page.Unaudited, draft),
	page.Post(path, page.ClientSide, puntuale.Staff, "automation.create", create),
	page.Get(path+"/{id}", page.ClientSide, puntuale.Reader, show),
	page.Get(path+"/{id}/edit", page.ClientSide, puntuale.Staff, edit),
	page.Post(path+"/{id}", page.ClientSide, puntuale.Staff, "automation.change", update),
	page.Post(path+"/{id}/switch", page.ClientSide, puntuale.Staff, "automation.switch", switchRule),
	page.Post(path+"/{id}/rotate", page.ClientSide, puntuale.Staff, "automation.rotate", rotate),
	page.Post(path+"/{id}/delete", page.ClientSide, puntuale.Staff, "automation.delete", deleteRule),
}
